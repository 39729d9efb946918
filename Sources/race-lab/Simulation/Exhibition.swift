import Foundation
import Interleavings
import RaceGallery

/// The output of `--show`: how often a design fails in each trial, and its shortest failing schedule.
struct Exhibition: CustomStringConvertible {
    private let design: Design
    private let contrast: Contrast
    private let shortest: (trial: Trial, failure: ScheduleFailure)?

    /// Two callers are enough for each of the bugs, and give the smallest diagram.
    private static let callers = 2

    /// Explores a design.
    ///
    /// - Parameter report: Called with the next activity, to show progress.
    init(of design: Design, report: (_ progress: String) -> Void = { _ in }) async throws {
        self.design = design
        contrast = try await Contrast(of: design, report: report)
        report("the shortest")
        var overrides = Overrides.current
        overrides.seeksNearestPass = true
        shortest = try await Overrides.$current.withValue(overrides) { [contrast] in
            try await Self.shortest(of: design, in: contrast)
        }
    }

    /// The shortest failure of the first trial that fails, with as few delays as possible.
    private static func shortest(of design: Design, in contrast: Contrast) async throws -> (Trial, ScheduleFailure)? {
        for trial in contrast.trials.filter({ $0.summary.failures > 0 }).map(\.trial) {
            for delays in 0...Contrast.delays {
                let summary = try await trial.explore(design, callers: callers, .exhaustive(delays: delays))
                if let failure = summary.firstFailure { return (trial, failure) }
            }
        }
        return nil
    }

    /// The page that walks through that schedule; `nil`: none fails.
    var page: String? { shortest.map { FailurePage($0.failure).html } }

    var description: String {
        let rows = contrast.trials.map { [$0.trial.name, "\($0.summary.schedules)", "\($0.summary.failures)"] }
        let table = Table(headings: [["trial"], ["schedules"], ["failing"]], rows: rows)
        let text = [heading, table.lines.joined(separator: "\n"), picture].joined(separator: "\n\n")
        // The diagram already fits; only a sentence or the replay line can be too long.
        return text.components(separatedBy: "\n").map { $0.wrapped(indent: $0.hasPrefix(" ") ? 8 : 0) }
            .joined(separator: "\n")
    }

    private var heading: String {
        let verdict =
            shortest == nil
            ? "\(design.name) never fails: \(contrast.schedules) schedules explored,"
            : "\(design.name) fails in \(contrast.failures) of \(contrast.schedules) schedules:"
        return "\(verdict) all those of \(Contrast.callers) callers with at most \(Contrast.delays) delays."
    }

    private var picture: String {
        guard let (trial, failure) = shortest else {
            return "Every caller is answered once, in order, with a token that the server accepts, after one load."
        }
        return "The shortest with \(Self.callers) callers, where \(trial.name):\n\n\(failure)"
    }
}
