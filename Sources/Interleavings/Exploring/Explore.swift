import Dispatch
import TokenServiceConcurrency

/// Runs a scenario under one schedule after another, and throws the first failure with its schedule and its diagram.
///
/// A schedule fails if the scenario throws, if a ``Simulation/require(_:_:fileID:line:)`` fails anywhere, if a spawned task
/// throws an error that nothing reads, never finishes (a deadlock) or runs endlessly (a livelock), or if the code awaits what the
/// explorer does not drive (an escape). The first and the failing schedule run twice: the same choices must lead to the same
/// execution. A failure's schedule is shrunk, unless it cannot be repeated.
///
/// Each exploration has its own thread, so that explorations don't affect each other. As many run at once as there are
/// processors, but one that drives everything runs alone; the others wait for their turn. A sampled schedule is fair: a task that
/// was passed over some hundred times is picked, so that waiting by yielding is not a livelock. An exhaustive exploration may
/// pass over a task up to the step limit; that schedule may then take as many steps again to end fairly, and the summary says so.
///
/// If the process ends during a schedule, the schedule is not lost: it is written to standard error at a crash, or by the next
/// run of the same package after a kill or an `exit`. The next run of the same exploration draws it, up to the step that ended the
/// process. A step that takes longer than 20 seconds of real time fails its schedule.
///
/// The explorer doesn't notice work that the execution never awaits. A `Task.detached {}` without the simulation's executor runs
/// beside it, and its effects show as nondeterminism at best. A task that ends before it is awaited does not count as
/// an escape.
///
/// - Parameters:
///   - strategy: How schedules are chosen.
///   - time: When the simulation's clock moves.
///   - ordering: In which order jobs run that have reached an actor.
///   - machine: How long a task that could run may be left without a processor.
///   - granularity: Where tasks may be switched: between jobs, or also inside synchronous code.
///   - driving: Which code to drive: that which prefers the simulation's executor, or all.
///   - stepLimit: How many steps one execution may have.
///   - countsFailures: Whether to continue after a failure and return the number of failures, instead of throwing the first.
///     Nondeterminism, and a failure that leaves a thread behind, are thrown in any case.
///   - scenario: What to run. It creates everything it needs, and differs between runs only in the order of events.
///   - fileID: The file of the call, which a report after a crash names.
///   - line: The line of the call.
/// - Returns: The summary of the exploration.
/// - Throws: A ``ScheduleFailure``, an ``ExplorationProblem`` if no schedule would run or the scenario starts nothing, or
///   `CancellationError` if the calling task is cancelled.
@discardableResult
public func explore(
    _ strategy: Strategy = .mixed(),
    time: TimeModel = .whenIdle,
    ordering: ActorOrdering = .arrival,
    machine: MachineModel = .fair,
    granularity: Granularity = .jobs,
    driving: Driving = .preferred,
    stepLimit: Int = 10_000,
    countsFailures: Bool = false,
    _ scenario: @escaping @Sendable (_ simulation: Simulation) async throws -> Void,
    fileID: StaticString = #fileID, line: UInt = #line
) async throws -> ExplorationSummary {
    var settings = Settings(
        time: time, ordering: ordering, machine: machine, granularity: granularity, driving: driving,
        stepLimit: max(stepLimit, 1))
    if Overrides.current.number != nil { settings.program = Overrides.current.program }
    // An exploration inside a scenario is part of that scenario's step.
    if let outer = Simulation.current {
        var inner = Exploration(
            settings: settings, countsFailures: countsFailures, watchdog: outer.engine.watchdog, scenario: scenario)
        inner.settings.doors = try driving.checkedDoors()
        guard let thread = ControlledThread.current else { return try inner.run(strategy) }
        return try thread.exploring { try inner.run(strategy) }
    }
    let summary = Lock(ExplorationSummary(granularity: granularity))
    try await Expectations.failSchedules { [settings] in
        let done = try await begin(strategy, settings, countsFailures: countsFailures, at: "\(fileID):\(line)", scenario)
        summary.withLock { $0 = done }
    }
    return summary.withLock { $0 }
}

/// Runs an exploration when it is its turn.
private func begin(
    _ strategy: Strategy, _ settings: Settings, countsFailures: Bool, at place: String,
    _ scenario: @escaping Exploration.Scenario
) async throws -> ExplorationSummary {
    // Don't continue on the pool: there it would wait behind a thousand tests while it holds its place.
    try await withTaskExecutorPreference(ExplorationThread()) {
        try await ExplorationLimiter.shared.run(alone: settings.driving.isEverything) {
            let (overrides, number) = Overrides.current.beginExploration()
            var settings = settings
            let place = overrides.place ?? place
            settings.number = number
            settings.time = overrides.time ?? settings.time
            settings.test = overrides.test
            settings.seeksNearestPass = overrides.seeksNearestPass
            let left = BlackBoxFile.takeLeft(by: BlackBox.origin(place, settings), of: overrides.package)
            for text in left.compactMap(\.text) { StandardError.write(text) }
            let blackBox = BlackBox(place, command: overrides.command, package: overrides.package)
            let watchdog = Watchdog(settings)
            defer { blackBox.close() }
            let exploration = Exploration(
                settings: settings, countsFailures: countsFailures, blackBox: blackBox, watchdog: watchdog,
                scenario: scenario)
            let strategy = overrides.applied(to: strategy)
            // Run on its own thread: on the pool it would starve escaped work, and so hide the escape.
            return try await watchdog.run(on: ExplorationThread()) {
                var exploration = exploration
                exploration.settings.doors = try exploration.settings.driving.checkedDoors()
                for earlier in left {
                    var exploration = exploration
                    exploration.picture(of: earlier, at: place).map(StandardError.write)
                }
                return try exploration.run(strategy)
            }
        }
    }
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

/// The order of the jobs of one priority that have reached an actor: that of their arrival, or any.
public enum ActorOrdering: Sendable, Hashable {
    /// In the order of their arrival, as in the runtime's own queue of an actor.
    ///
    /// Calls from several tasks come to the actor in any order, since each task's thread may be held up before its call.
    case arrival
    /// A job may overtake an earlier one, as with an executor that promises no order; those that one step sends keep theirs.
    case any
}

/// How long a machine leaves a task without a processor although it could run.
public enum MachineModel: Sendable, Hashable {
    /// While others take some hundred steps, at most: code that waits by yielding soon continues.
    case fair
    /// While others take thousands of steps, as on a loaded machine, until half of the step limit is used up; then as ``fair``.
    ///
    /// So no counted number of yields or polls is enough, and waiting without a count still ends. Time moves as ``TimeModel`` says: by
    /// default a poll with a deadline passes, because no time passes while a task can run.
    case busy
}

/// Where an exploration may switch from one task to another.
public enum Granularity: Sendable, Hashable {
    /// Between jobs: where a task suspends, hops to another actor or ends, and between a queue's blocks. Where the queues of
    /// Dispatch are driven, also where a thread may have to wait: at `sync`, and at `wait` of a group, a semaphore or a work
    /// item.
    ///
    /// This is the fastest. Code between two suspensions runs as one piece: no other task runs between two locks that it takes,
    /// or between a lock and a queue or a stream.
    case jobs
    /// Also inside synchronous code: at each ``interleavingPoint(_:)``, at each access to an ``Interleaved`` variable, before
    /// a thread takes an ``InterleavedLock`` and after it frees it, and before a block goes to a ``VirtualQueue``. Each piece
    /// of work has its own thread; one runs at a time.
    ///
    /// Where everything is driven, also before a plain lock is taken and after it is freed: an `NSLock`, a `pthread_mutex_t`, a lock
    /// for readers and writers, a condition. A thread never stops anywhere else, such as before a value goes to an `AsyncStream` or a
    /// `Mutex` is taken. Put an ``interleavingPoint(_:)`` there if that order matters.
    case accesses
}

/// The settings of an execution, apart from its choices.
struct Settings: Sendable {
    /// Which exploration of its test it is, from 1.
    var number = 1
    /// The program of operations that the scenario runs; `nil` for any other scenario.
    var program: Program?
    var time = TimeModel.whenIdle
    var ordering = ActorOrdering.arrival
    var machine = MachineModel.fair
    var granularity = Granularity.jobs
    var driving = Driving.preferred
    /// The doors that are open during each step.
    var doors: (any RuntimeDoors)?
    var stepLimit = 10_000
    /// How a whole test is the scenario; `nil`: it isn't.
    var test: TestForm?
    /// Whether a failure is compared with a schedule that passes.
    var seeksNearestPass = false
    /// The spawned tasks that never begin, and that nothing waits for: whether a failure needs them is being tried.
    var omitted: Set<String> = []
    /// How long a step may take on a controlled thread, in real time, before it counts as blocked.
    ///
    /// A step usually takes microseconds.
    var stepSeconds = 20.0

    /// The name of the scenario's task.
    var rootName: String { test == nil ? Diagram.scenario : "test" }

    /// Whether steps run on threads that can stop inside a step.
    var usesThreads: Bool { granularity == .accesses || driving.needsThreads }
}
