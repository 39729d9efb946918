/// One controlled execution: what a scenario uses in place of the real pool, clock and queues.
///
/// Everything may be used from any task or block of the execution. After it has ended, nothing does anything.
public final class Simulation: Sendable {
    /// The simulation in whose execution this is called; `nil` anywhere else, and in detached tasks.
    @TaskLocal public static var current: Simulation?
    /// The name of the spawned task in which something happens.
    @TaskLocal static var taskName: String?

    /// Where the code under test must run its tasks: give it to `Task(executorPreference:)`.
    public let taskExecutor: any TaskExecutor
    /// The only clock of the execution; it starts at zero and moves by itself to the next deadline.
    public let clock: VirtualClock
    let engine: Engine

    init(_ engine: Engine) {
        self.engine = engine
        taskExecutor = PoolExecutor(engine)
        clock = VirtualClock(engine: engine)
    }

    /// Starts a task that the execution waits for.
    ///
    /// It runs on ``taskExecutor``, at the granularity of accesses on a thread of its own. An error that it throws is its
    /// task's value and fails nothing else; only the scenario's own errors and ``require(_:_:)`` do.
    ///
    /// - Parameters:
    ///   - name: Its name in reports; the second of the same name becomes "name (2)".
    ///   - body: What it does.
    @discardableResult
    public func spawn<Value: Sendable>(
        _ name: String, _ body: @escaping @Sendable () async throws -> Value
    ) -> Task<Value, any Error> {
        let engine = engine
        let (number, name) = engine.beginSpawning(name)
        let task = Task(executorPreference: taskExecutor) {
            defer { engine.end(spawned: number) }
            guard engine.records else { return try await body() }
            return try await Simulation.$taskName.withValue(name) { try await engine.recording(name, body) }
        }
        engine.didSpawn(number) { task.cancel() }
        return task
    }

    /// Makes an executor for an actor: each of its jobs is a step of its own, and bears the actor's name.
    ///
    /// An actor without one also runs under control; what it has queued then runs in one step.
    public func actorExecutor(_ name: String) -> any SerialExecutor {
        LaneExecutor(engine, name, .serial)
    }

    /// Makes a queue that runs one block at a time, in order of arrival.
    public func serialQueue(_ label: String) -> VirtualQueue {
        VirtualQueue(engine, label, .fifo)
    }

    /// Makes a queue that runs any number of blocks at once, in any order.
    public func concurrentQueue(_ label: String) -> VirtualQueue {
        VirtualQueue(engine, label, .concurrent)
    }
}
