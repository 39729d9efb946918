/// How the schedules of an exploration are chosen.
public struct Strategy: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case mixed(schedules: Int, seed: UInt64)
        case random(schedules: Int, seed: UInt64)
        case pct(schedules: Int, depth: Int, seed: UInt64)
        case exhaustive(preemptions: Int?, delays: Int?, limit: Int)
        case replay(Schedule)
    }

    let kind: Kind

    /// Random walks and PCT of depths 2 to 4 in turn, after one schedule without any switch: the default.
    ///
    /// Random walks find what many schedules show; PCT finds what needs a task to be late by a lot.
    public static func mixed(schedules: Int = 1_000, seed: UInt64 = 1) -> Strategy {
        Strategy(kind: .mixed(schedules: schedules, seed: seed))
    }

    /// A uniform choice at every step.
    public static func random(schedules: Int = 1_000, seed: UInt64 = 1) -> Strategy {
        Strategy(kind: .random(schedules: schedules, seed: seed))
    }

    /// Probabilistic concurrency testing: random priorities, lowered at `depth - 1` random steps.
    ///
    /// - Parameters:
    ///   - schedules: How many executions.
    ///   - depth: How many ordering constraints a bug may need to be found with a guaranteed probability; 2 or 3 for most.
    ///   - seed: Where the random numbers begin.
    ///
    /// Source: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010.
    public static func pct(schedules: Int = 1_000, depth: Int = 3, seed: UInt64 = 1) -> Strategy {
        Strategy(kind: .pct(schedules: schedules, depth: depth, seed: seed))
    }

    /// All schedules, or all with at most so many preemptions or delays, depth first.
    ///
    /// - Parameters:
    ///   - preemptions: How often a schedule may switch away from a task that could have gone on; `nil`: without bound.
    ///   - delays: How many candidates a schedule may pass over, the one that runs first unless told otherwise being picked
    ///     at all other steps; `nil`: without bound. Bounds also code that suspends at each step, as calls of actors do.
    ///   - limit: After so many schedules it ends, and the summary is not complete.
    public static func exhaustive(preemptions: Int? = nil, delays: Int? = nil, limit: Int = 1_000_000) -> Strategy {
        Strategy(kind: .exhaustive(preemptions: preemptions, delays: delays, limit: limit))
    }

    /// One schedule, as a failure printed it.
    public static func replay(_ schedule: Schedule) -> Strategy {
        Strategy(kind: .replay(schedule))
    }
}
