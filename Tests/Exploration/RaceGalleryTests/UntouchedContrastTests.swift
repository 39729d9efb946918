import Foundation
import Interleavings
import InterleavingsEverything
import RaceGallery
import TestBudgets
import Testing

/// The articles' designs again, unmodified: they take no parameters from the simulation.
@Suite struct `The contrast, untouched` {
    /// A design, the trials in which it fails, and those in which it fails only with a seam, with the reason.
    struct Row: Sendable {
        let design: Design
        var driving = Driving.everything
        let failing: [Trial]
        var seamed: [Trial] = []
        var reason = ""
    }

    static let rows = [
        Row(design: .unpredictable, failing: Trial.all),
        Row(
            design: .enqueueing, failing: [.signOut, .release, .silence], seamed: [.rush, .echo],
            reason: "two threads in one method, which only access points separate"),
        Row(design: .threadSafe, driving: .everythingAndQueues, failing: [.signOut, .release, .silence]),
        Row(design: .reentrant, failing: [.rush, .signOut, .silence]),
        Row(design: .callbackShim, driving: .everythingAndQueues, failing: []),
        Row(design: .tokenService, failing: []),
    ]

    @Test(arguments: [Driving.preferred, .everything])
    func `if everything is driven, a service gets no executor and the program's own clock`(_ driving: Driving) async throws {
        try await explore(.random(schedules: 1), driving: driving) { simulation in
            #expect((simulation.seams.executor == nil) == driving.isEverything)
            #expect((simulation.seams.clock is ContinuousClock) == driving.isEverything)
            simulation.spawn("a second step") {}
        }
    }

    @Test(arguments: rows) func `each design fails in the trials that concern its flaws`(_ row: Row) async throws {
        var failing: [String] = []
        for trial in Trial.all {
            let (callers, delays) = (Int.everyday(2, thorough: 3), Int.everyday(1, thorough: 2))
            let summary = try await trial.explore(row.design, callers: callers, .exhaustive(delays: delays), driving: row.driving)
            #expect(summary.coverage.gaps.isEmpty, "\(trial.name): \(summary)")
            if summary.failures > 0 { failing.append(trial.name) }
        }
        #expect(failing == row.failing.map(\.name))
    }

    @Test(arguments: Trial.all) func `a TokenService with its default environment fails in no schedule`(_ trial: Trial)
        async throws
    {
        let summary = try await trial.explore(.tokenService, callers: 2, .exhaustive(delays: 3), driving: .everything)
        #expect(summary.failures == 0, "\(summary.firstFailure.map { "\($0)" } ?? "")")
        #expect(summary.coverage.gaps.isEmpty)
    }

    @Test func `Docs/Untouched.md says where each design fails`() throws {
        let page = try String(contentsOf: Untouched.page, encoding: .utf8)
        for row in Self.rows {
            func list(_ trials: [Trial]) -> String { trials.isEmpty ? "–" : trials.map(\.name).joined(separator: "; ") }
            let more = row.seamed.isEmpty ? "–" : "\(list(row.seamed)): \(row.reason)"
            let line = "| \(row.design.name) | \(list(row.failing)) | \(more) |"
            #expect(page.contains(line), "\(line)")
        }
        #expect(Self.rows.map(\.design.name) == Design.all.map(\.name))
    }
}

/// The result of exploring an exhibit whose service takes nothing from the simulation.
enum Untouched: Sendable {
    case found
    /// Its service runs on a `DispatchQueue`, so that `.everything` isn't enough.
    case foundWithQueues
    /// Why the bug can't be shown without a seam.
    case notApplicable(String)

    init(_ exhibit: Exhibit) {
        self =
            switch exhibit.number {
            case 18: .foundWithQueues
            case 23: .notApplicable("`Date()` never goes back in a simulation; the exhibit brings a wall clock that does")
            case 25: .notApplicable("two threads in one method, which only access points separate")
            case 27: .notApplicable("two locks that are taken in one step; only `InterleavedLock` separates them")
            case 28: .notApplicable("the simulation's pool has as many threads as it needs; the exhibit brings a pool of two")
            default: .found
            }
    }

    /// The code that must be driven to find it; `nil`: it isn't found.
    var driving: Driving? {
        switch self {
        case .found: .everything
        case .foundWithQueues: .everythingAndQueues
        case .notApplicable: nil
        }
    }

    var text: String {
        switch self {
        case .found: "found"
        case .foundWithQueues: "found, with `.everythingAndQueues`"
        case .notApplicable(let reason): "not applicable: \(reason)"
        }
    }

    private static let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }
    static let page = root.appending(path: "Docs/Untouched.md")
    static let guide = root.appending(
        path: "Sources/InterleavingsEverything/InterleavingsEverything.docc/ExploringCodeYouCantChange.md")
}
