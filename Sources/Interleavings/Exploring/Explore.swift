import Dispatch

/// Runs a scenario under one schedule after another, and throws the first failure with its schedule and its diagram.
///
/// A schedule fails if the scenario throws, if a ``Simulation/require(_:_:)`` fails anywhere, if a spawned task never gets
/// to its end (a deadlock) or runs endlessly (a livelock), or if the code awaits what the explorer does not drive (an escape).
/// The first and the failing schedule run twice: the same choices must lead to the same execution. A failure's schedule is
/// shrunk, unless it cannot be repeated.
///
/// Each exploration has a thread of its own, so that explorations do not disturb each other. One runs for every two
/// processors; the others wait for their turn. Every schedule is fair: a task that was passed over some hundred times is
/// picked, so that waiting by yielding is not a livelock.
///
/// The explorer cannot see work that the execution never awaits. A `Task.detached {}` without the simulation's executor runs
/// beside it, and what it changes shows at best as nondeterminism. A task that ends before it is awaited does not count as
/// an escape.
///
/// - Parameters:
///   - strategy: How schedules are chosen.
///   - time: When the simulation's clock moves.
///   - granularity: Where tasks may be switched: between jobs, or also inside synchronous code.
///   - stepLimit: How many steps one execution may have.
///   - countsFailures: Whether to go on after a failure and return their number, instead of throwing the first. What
///     cannot be counted is thrown: nondeterminism, and a failure that leaves a thread behind.
///   - scenario: What to run. It creates everything it needs, and differs between runs only in the order of events.
/// - Returns: What was done.
/// - Throws: A ``ScheduleFailure``, or `CancellationError` if the calling task is cancelled.
@discardableResult
public func explore(
    _ strategy: Strategy = .mixed(),
    time: TimeModel = .whenIdle,
    granularity: Granularity = .jobs,
    stepLimit: Int = 10_000,
    countsFailures: Bool = false,
    _ scenario: @escaping @Sendable (_ simulation: Simulation) async throws -> Void
) async throws -> ExplorationSummary {
    let settings = Settings(time: time, granularity: granularity, stepLimit: max(stepLimit, 1))
    let exploration = Exploration(settings: settings, countsFailures: countsFailures, scenario: scenario)
    // Inside a scenario, the inner exploration is part of the step.
    guard Simulation.current == nil else { return try run(exploration, strategy) }
    // On a thread of its own: on the pool it would starve escaped work, and so hide it.
    return try await ExplorationLimiter.shared.run {
        try await withTaskExecutorPreference(ExplorationThread()) {
            try await runThere(exploration, Overrides.current.applied(to: strategy))
        }
    }
}

@concurrent private func runThere(_ exploration: Exploration, _ strategy: Strategy) async throws -> ExplorationSummary {
    try run(exploration, strategy)
}

private func run(_ exploration: Exploration, _ strategy: Strategy) throws -> ExplorationSummary {
    var exploration = exploration
    return try exploration.run(strategy)
}

/// A thread for an exploration.
private final class ExplorationThread: TaskExecutor {
    private let queue = DispatchQueue(label: "interleavings.exploration")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// When a simulation's clock moves: always to the next deadline, never by itself.
public enum TimeModel: Sendable, Hashable {
    /// When nothing can run: work takes no time, as in Go's `testing/synctest`.
    case whenIdle
    /// At any step: a timer may fire while work is pending, as on a loaded machine.
    case anytime
}

/// Where an exploration may switch from one task to another.
public enum Granularity: Sendable, Hashable {
    /// Between jobs: where a task suspends, hops to another actor or ends, and between a queue's blocks.
    ///
    /// The fastest, and enough for a program without data races.
    case jobs
    /// Also inside synchronous code: at each ``interleavingPoint(_:)``, at each access to an ``Interleaved`` variable, and
    /// where a thread waits for an ``InterleavedLock``. Each piece of work has a thread of its own; one runs at a time.
    case accesses
}

/// What an exploration did.
public struct ExplorationSummary: Sendable {
    /// How many schedules ran, without those for checking and shrinking.
    public internal(set) var schedules = 0
    /// How many of them failed: none or one, unless the exploration counts failures.
    public internal(set) var failures = 0
    /// The first failure, with its schedule shrunk.
    public internal(set) var firstFailure: ScheduleFailure?
    /// The steps of all schedules together.
    public internal(set) var steps = 0
    /// The largest number of choices in one schedule.
    public internal(set) var mostChoices = 0
    /// Whether every schedule ran; `true` only for an exhaustive exploration that reached no limit.
    public internal(set) var isComplete = false
}

/// The settings of an execution, apart from its choices.
struct Settings: Sendable {
    var time = TimeModel.whenIdle
    var granularity = Granularity.jobs
    var stepLimit = 10_000
    /// How long a step may take on a controlled thread, in real time, before it counts as blocked.
    ///
    /// A step usually takes microseconds.
    var stepSeconds = 20.0
}
