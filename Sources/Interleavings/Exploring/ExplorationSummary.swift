public import TokenServiceConcurrency

/// The results of an exploration; for generated programs, the combined results of all programs.
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
    package internal(set) var coverage: Coverage
    /// Whether all orders ran, without any bound.
    ///
    /// This means orders of steps at the exploration's granularity, and only of work that the explorer drives;
    /// <doc:WhatAPassProves> lists other work. With generated programs, it refers only to those that ran. The summary's
    /// description says which orders are missing, and why.
    public var ranAllOrders: Bool { coverage.isAll }
    /// Whether all orders within the exploration's bounds ran; the summary's description names the bounds.
    public var ranAllOrdersWithinBounds: Bool { coverage.isAllWithinBounds }
    /// The models of time under which schedules ran.
    package internal(set) var timeModels: Set<TimeModel> = []
    /// The kinds of order that the executions left out.
    var omissions: Omissions = []
    /// In how many schedules the scenario checked a requirement and ended before its tasks began.
    var hastySchedules = 0
    /// The generated programs that ran, in words: each task's operations in their order; empty: the scenario is the test's own.
    package internal(set) var programs: [String] = []
    /// The seed with which the programs were drawn; `nil`: one was replayed, or there are none.
    package internal(set) var programSeed: UInt64?

    init(granularity: Granularity) {
        coverage = Coverage(granularity: granularity)
    }

    /// Adds the results of one more program.
    mutating func add(_ program: String, _ other: ExplorationSummary) {
        programs.append(program)
        schedules += other.schedules
        distinctSchedules += other.distinctSchedules
        steps += other.steps
        mostChoices = max(mostChoices, other.mostChoices)
        coverage.formUnion(other.coverage)
        timeModels.formUnion(other.timeModels)
        hastySchedules += other.hastySchedules
    }

    /// The counts, the models of time and the coverage, as a sentence, with a note if the scenario tests less than it seems to.
    package var text: String {
        let about = distinctSchedules > DistinctCount.capacity ? "about " : ""
        let distinct = distinctSchedules == schedules ? "" : " (\(about)\(distinctSchedules) distinct)"
        let seed = programSeed.map { " (seed \($0))" } ?? ""
        let program = programs.isEmpty ? "" : "\(programs.count) program\(programs.count == 1 ? "" : "s")\(seed), "
        let count = program + (schedules == 1 ? "1 schedule" : "\(schedules) schedules") + distinct
        let times = [TimeModel.whenIdle, .anytime].filter(timeModels.contains).map { "\($0)" }.joined(separator: " and ")
        let choices = mostChoices == 0 ? "; nothing in the scenario could have run in another order" : ""
        let haste =
            schedules > 0 && hastySchedules == schedules
            ? "; in every schedule the scenario ended before its tasks began, so its requirements didn't see their work: await"
                + " them or call settle() first" : ""
        return "\(count), \(failures == 0 ? "none" : "\(failures)") failed; time \(times); \(coverage)\(choices)\(haste)"
    }
}
