import Interleavings
import RaceGallery

/// The explorer's findings about a design: each trial, under every schedule with few delays.
struct Contrast {
    /// More callers only add schedules; they show no more bugs than three callers do.
    static let callers = 3
    /// Enough for each broken design to fail, few enough for all schedules to take a second or two.
    static let delays = 2

    let trials: [(trial: Trial, summary: ExplorationSummary)]

    /// Runs all trials with a design.
    ///
    /// - Parameter report: Called with the next trial, to show progress.
    init(of design: Design, callers: Int = Self.callers, report: (_ trial: String) -> Void = { _ in }) async throws {
        var trials: [(Trial, ExplorationSummary)] = []
        for trial in Trial.all {
            report(trial.name)
            trials.append((trial, try await trial.explore(design, callers: callers, .exhaustive(delays: Self.delays))))
        }
        self.trials = trials
    }

    var schedules: Int { trials.reduce(0) { $0 + $1.summary.schedules } }
    var failures: Int { trials.reduce(0) { $0 + $1.summary.failures } }
}
