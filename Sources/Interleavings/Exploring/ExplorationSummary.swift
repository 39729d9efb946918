public import TokenServiceConcurrency

/// The results of an exploration.
public struct ExplorationSummary: Sendable, Described {
    /// How many schedules ran, without those for checking and shrinking.
    public internal(set) var schedules = 0
    /// How many of them differed from each other.
    ///
    /// Exact up to 65,536; above that an estimate, usually within 1 %.
    package internal(set) var distinctSchedules = 0
    /// How many of them failed: none or one, unless the exploration counts failures.
    public internal(set) var failures = 0
    /// The first failure, with its schedule shrunk.
    public internal(set) var firstFailure: ScheduleFailure?
    /// The steps of all schedules together.
    package internal(set) var steps = 0
    /// The largest number of choices in one schedule; 0: the scenario has only one order.
    package internal(set) var mostChoices = 0
    /// Which orders ran: all, all within bounds, or not all, and why.
    public internal(set) var coverage: Coverage
    /// The models of time under which schedules ran.
    package internal(set) var timeModels: Set<TimeModel> = []
    /// The kinds of order that the executions left out.
    var omissions: Omissions = []
    /// In how many schedules the scenario ended before its tasks began, though it required something of them.
    var hastySchedules = 0

    init(granularity: Granularity) {
        coverage = Coverage(granularity: granularity)
    }

    /// The counts, the models of time and the coverage, as a sentence, with a note if the scenario tests less than it seems to.
    package var text: String {
        let about = distinctSchedules > DistinctCount.capacity ? "about " : ""
        let distinct = distinctSchedules == schedules ? "" : " (\(about)\(distinctSchedules) distinct)"
        let count = (schedules == 1 ? "1 schedule" : "\(schedules) schedules") + distinct
        let times = [TimeModel.whenIdle, .anytime].filter(timeModels.contains).map { "\($0)" }.joined(separator: " and ")
        let choices = mostChoices == 0 ? "; nothing in the scenario could have run in another order" : ""
        let haste =
            schedules > 0 && hastySchedules == schedules
            ? "; the scenario ended before its tasks began in every schedule, so what it required didn't see their work: await"
                + " them or settle() first" : ""
        return "\(count), \(failures == 0 ? "none" : "\(failures)") failed; time \(times); \(coverage)\(choices)\(haste)"
    }
}
