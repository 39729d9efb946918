/// How the schedules of an exploration are chosen.
public struct Strategy: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case mixed(schedules: Int, seed: UInt64)
        case random(schedules: Int, seed: UInt64)
        case pct(schedules: Int, depth: Int, seed: UInt64)
        case exhaustive(preemptions: Int?, delays: Int?, limit: Int)
        case replay(Schedule, stop: Int?)
    }

    let kind: Kind

    /// Random walks and PCT of depths 2 to 4 in turn, after the usual order, in which a task runs while it can: the default.
    ///
    /// Random walks find bugs that many schedules expose; PCT finds those for which one task must be very late.
    public static func mixed(schedules: Int = 1_000, seed: UInt64 = 1) -> Strategy {
        Strategy(kind: .mixed(schedules: schedules, seed: seed))
    }

    /// A uniform choice at every step.
    package static func random(schedules: Int = 1_000, seed: UInt64 = 1) -> Strategy {
        Strategy(kind: .random(schedules: schedules, seed: seed))
    }

    /// Probabilistic concurrency testing: random priorities, lowered at `depth - 1` random decisions.
    ///
    /// The first schedule is the usual order, which measures how many decisions there are.
    ///
    /// - Parameters:
    ///   - schedules: How many executions.
    ///   - depth: The largest number of ordering constraints with which a bug is found with a guaranteed probability; 2 or 3 for
    ///     most bugs.
    ///   - seed: The seed of the random numbers; neighbouring seeds explore independently.
    ///
    /// Source: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010.
    public static func pct(schedules: Int = 1_000, depth: Int = 3, seed: UInt64 = 1) -> Strategy {
        Strategy(kind: .pct(schedules: schedules, depth: depth, seed: seed))
    }

    /// All schedules, or all within a bound on preemptions or delays, depth first.
    ///
    /// A task may be as late as the step limit allows, so code that waits by yielding has a schedule for every number of turns:
    /// give such a scenario a small `stepLimit`.
    ///
    /// - Parameters:
    ///   - preemptions: How often a schedule may switch away from a task that could have continued; `nil`: without a bound.
    ///   - delays: How many candidates a schedule may pass over; `nil`: without a bound. This also bounds code that suspends at
    ///     each step, such as calls of actors.
    ///   - limit: The most schedules to run; if there are more, the summary says so.
    public static func exhaustive(preemptions: Int? = nil, delays: Int? = nil, limit: Int = 1_000_000) -> Strategy {
        Strategy(kind: .exhaustive(preemptions: preemptions.map { max($0, 0) }, delays: delays.map { max($0, 0) }, limit: limit))
    }

    /// The seed of its random numbers; `nil`: it has none.
    var seed: UInt64? {
        switch kind {
        case .mixed(_, let seed), .random(_, let seed), .pct(_, _, let seed): seed
        case .exhaustive, .replay: nil
        }
    }

    /// The largest number of schedules; `nil`: it is one replay.
    var mostSchedules: Int? {
        switch kind {
        case .mixed(let schedules, _), .random(let schedules, _), .pct(let schedules, _, _): schedules
        case .exhaustive(_, _, let limit): limit
        case .replay: nil
        }
    }

    /// One schedule, as a failure prints it.
    ///
    /// - Parameters:
    ///   - schedule: The choices to make: `"0.2.1"` picks the first candidate, then the third, then the second. Choices are
    ///     counted only where there is more than one candidate; after the last one the first candidate is picked. A choice that
    ///     is too large, or isn't a number, fails the replay.
    ///   - step: The step before which the replay stops, numbered as in the report's diagram; `nil`: it runs to the end. Where a
    ///     debugger is attached, it stops the process there, and the replay then continues. Elsewhere the schedule fails there, and
    ///     the report says which task runs next, and what the others wait for.
    public static func replay(_ schedule: String, stoppingAt step: Int? = nil) -> Strategy {
        Strategy(kind: .replay(Schedule(stringLiteral: schedule), stop: step))
    }
}
