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

extension Simulation {
    /// Waits until nothing else is left to do: nothing can run, and no timer is pending.
    ///
    /// Time moves on meanwhile. For what only this scenario can wake, it doesn't wait.
    ///
    /// - Throws: `CancellationError` when the execution is over.
    public func settle() async throws {
        try await engine.settle(waitsForTimers: true)
    }

    /// Waits until nothing else can run at the present time, as `Wait` of Go's `testing/synctest`.
    ///
    /// - Throws: `CancellationError` when the execution is over.
    public func settleNow() async throws {
        try await engine.settle(waitsForTimers: false)
    }

    /// Returns a number from 0 up to, not including, `count`: one more choice of the schedule, explored and replayed.
    ///
    /// - Parameters:
    ///   - name: What is chosen; shown in the report.
    ///   - count: How many there are; with fewer than two there is no choice, and the answer is 0.
    public func choose(_ name: String, _ count: Int) -> Int {
        let pick = engine.choose(count)
        log("chooses \(name): \(pick)")
        return pick
    }

    /// Returns one of the elements: one more choice of the schedule, explored and replayed; `nil` if there is none.
    public func choose<Element>(_ name: String, among elements: [Element]) -> Element? {
        guard !elements.isEmpty else { return nil }
        let element = elements[engine.choose(elements.count)]
        log("chooses \(name): \(Recorder.brief(element))")
        return element
    }

    /// Notes that something happened, for the report: free of cost where no report is made.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - task: By whom; unless said otherwise, the spawned task or the queue that this is called from.
    public func log(_ event: @autoclosure () -> String, by task: String? = nil) {
        engine.log(event(), by: task ?? Self.taskName)
    }

    /// Fails the execution, as an error of the scenario would.
    package func fail(_ message: String) {
        let problem = ExplorationProblem(.requirement, detail: message)
        engine.fail(problem, by: Self.taskName, message)
    }

    /// Fails the execution, wherever it is called, unless the condition holds.
    ///
    /// - Parameters:
    ///   - condition: What must hold.
    ///   - message: What it means; shown as the reason of the failure.
    /// - Throws: An ``ExplorationProblem`` with the code ``ExplorationProblem/Code/requirement``.
    public func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        guard !condition else { return }
        let problem = ExplorationProblem(.requirement, detail: message())
        engine.fail(problem, by: Self.taskName, problem.detail)
        throw problem
    }
}
