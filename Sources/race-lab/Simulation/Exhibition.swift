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
        // Code that is copied stays whole: the replay line is the only one that is both indented and too long.
        return text.components(separatedBy: "\n").map { $0.hasPrefix(" ") ? $0 : $0.wrapped(indent: 0) }.joined(separator: "\n")
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
        let diagram = failure.diagram
        let fits = diagram.split(separator: "\n").allSatisfy { $0.count <= Console.columns }
        let report = fits ? failure.text : failure.text.replacing(diagram, with: Self.list(failure.trace))
        return "The shortest with \(Self.callers) callers, where \(trial.name):\n\n\(report)"
    }

    /// The diagram's steps one below the other, for a window in which it doesn't fit.
    private static func list(_ trace: Trace) -> String {
        let lines = trace.steps.flatMap { step in
            step.events.filter { $0.kind != .start && $0.kind != .end && !$0.text.isEmpty }.map { event in
                let number = "\(step.number)"
                let space = String(repeating: " ", count: max(4 - number.count, 0))
                let place = "\(space)\(number) \(step.pick > 0 ? "►" : " ") "
                return "\(place)\(event.task.isEmpty ? step.task : event.task): \(event.text)".wrapped(indent: 9)
            }
        }
        let legend = trace.steps.contains { $0.pick > 0 } ? ["", "► the schedule left the usual order here"] : []
        return (lines + legend).joined(separator: "\n")
    }
}
