import Foundation
import Interleavings
import RaceGallery
import Testing

@testable import race_lab

/// Where the package is.
let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }

extension String {
    /// The lines that don't fit in a terminal of 80 columns.
    var tooLong: [Substring] { split(separator: "\n").filter { $0.count > 80 } }
}

/// A run of the lab, with its progress messages.
struct LabRun: Sendable {
    enum Event: Sendable, Equatable {
        case progress(String), text(String)
    }

    let report: SimulationReport
    let events: [Event]

    init(callers: Int) async throws {
        var events: [Event] = []
        report = try await SimulationReport(callers: callers, report: { events.append(.progress($0)) }) {
            events.append(.text($0))
        }
        self.events = events
    }

    /// With the default number of callers, and without doors, which the lab doesn't link.
    ///
    /// Once for all tests, since it takes a second.
    static let usual = Task { try await Overrides.unaided { try await LabRun(callers: Options.usualCallers) } }

    /// The lab's output.
    var text: String {
        events.compactMap { if case .text(let text) = $0 { text } else { nil } }.joined(separator: "\n")
    }

    var progress: [String] {
        events.compactMap { if case .progress(let text) = $0 { text } else { nil } }
    }
}

private let exhibitions = Dictionary(
    uniqueKeysWithValues: Design.all.map { design in
        (design.name, Task { try await Overrides.unaided { try await Exhibition(of: design) } })
    })

/// The output of `--show`.
func exhibition(of name: String) async throws -> String { try await exhibition(named: name).description }

/// Returns what `--show` explores, once for all tests.
func exhibition(named name: String) async throws -> Exhibition { try await #require(exhibitions[name]).value }
