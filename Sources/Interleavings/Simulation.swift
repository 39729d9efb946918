/// One controlled execution: a scenario uses it in place of the real pool, clock and queues.
///
/// Every member may be used from any task or block of the execution. After its end they have no effect.
public final class Simulation: Sendable {
    /// The simulation of the current task; `nil` outside an execution, and in detached tasks.
    public static var current: Simulation? { running }
    @TaskLocal static var running: Simulation?
    /// The name of the current spawned task.
    @TaskLocal static var taskName: String?

    /// The executor on which the code under test must run its tasks: pass it to `Task(executorPreference:)`.
    public let taskExecutor: any TaskExecutor
    /// The execution's clock; it starts at zero and jumps from deadline to deadline.
    public let clock: VirtualClock
    /// Whether all code is driven, including code that takes no parameters from the simulation.
    package let drivesEverything: Bool
    let engine: Engine

    init(_ engine: Engine, taskExecutor: (any TaskExecutor)? = nil, drivesEverything: Bool = false) {
        self.engine = engine
        self.drivesEverything = drivesEverything
        self.taskExecutor = taskExecutor ?? PoolExecutor(engine)
        clock = VirtualClock(engine: engine)
    }

    /// Starts a task that the execution waits for.
    ///
    /// It runs on ``taskExecutor``; at the granularity of accesses, on its own thread. If it throws an error and nothing
    /// asks for its ``SpawnedTask/value`` or ``SpawnedTask/result``, the schedule fails at its end, with an
    /// ``ExplorationProblem``. If an error is expected, read it, catch it in the task or call ``SpawnedTask/allowingError()``. A
    /// `CancellationError` doesn't count if the task was cancelled.
    ///
    /// - Parameters:
    ///   - name: Its name in reports; a second task of the same name becomes "name (2)".
    ///   - body: The task's work.
    ///   - fileID: The file of the call, for an error that nothing reads.
    ///   - line: The line of the call.
    /// - Returns: The task, to wait for it, to read its result or to cancel it.
    @discardableResult
    public func spawn<Value: Sendable>(
        _ name: String, _ body: @escaping @Sendable () async throws -> Value, fileID: StaticString = #fileID, line: Int = #line
    ) -> SpawnedTask<Value> {
        spawn(name, in: nil, at: "\(fileID):\(line)", body)
    }

    func spawn<Value: Sendable>(
        _ name: String, in process: Int?, at place: String, _ body: @escaping @Sendable () async throws -> Value
    ) -> SpawnedTask<Value> {
        let engine = engine
        let (number, name) = engine.beginSpawning(name, in: process, at: place)
        let task = Task(executorPreference: taskExecutor) {
            engine.begin(spawned: number)
            do {
                let value = try await engine.work(name, body)
                engine.end(spawned: number)
                return value
            } catch {
                engine.end(spawned: number, throwing: error)
                throw error
            }
        }
        engine.didSpawn(number) { task.cancel() }
        return SpawnedTask(task: task, number: number, engine: engine)
    }

    /// Creates a process: tasks that can be frozen and killed together.
    ///
    /// - Parameter name: Its name in reports.
    public func process(_ name: String) -> SimulatedProcess {
        SimulatedProcess(name, of: self)
    }

    /// Creates an executor for an actor: each of its jobs is a separate step, shown with the actor's name.
    ///
    /// An actor without such an executor is also controlled, but its queued jobs run in one step.
    public func actorExecutor(_ name: String) -> any SerialExecutor {
        LaneExecutor(engine, name, .serial)
    }

    /// Creates a queue that runs one block at a time, in order of arrival.
    public func serialQueue(_ label: String) -> VirtualQueue {
        VirtualQueue(engine, label, .fifo)
    }

    /// Creates a queue that runs any number of blocks at once, in any order.
    public func concurrentQueue(_ label: String) -> VirtualQueue {
        VirtualQueue(engine, label, .concurrent)
    }
}

extension Simulation {
    /// Waits until nothing else is left to do: nothing can run, and no timer is pending.
    ///
    /// Time moves on meanwhile. Tasks that only this scenario can wake do not count.
    ///
    /// - Parameter waitsForTimers: `false` waits only until nothing else can run at the present time, as `Wait` of Go's
    ///   `testing/synctest`.
    /// - Throws: `CancellationError` when the execution is over.
    public func settle(waitsForTimers: Bool = true) async throws {
        try await engine.settle(waitsForTimers: waitsForTimers)
    }

    /// Returns a number from 0 up to, but not including, `count`: one more choice of the schedule, explored and replayed.
    ///
    /// - Parameters:
    ///   - name: The name of the choice, for the report.
    ///   - count: How many possibilities there are; with fewer than two the result is 0, without a choice.
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

    /// Notes an event for the report; costs nothing where no report is made.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - task: The name of the task that did it; `nil`: the current spawned task or queue.
    public func log(_ event: @autoclosure () -> String, by task: String? = nil) {
        engine.log(event(), by: task ?? engine.author(Self.taskName))
    }

    /// Fails the execution, as an error of the scenario would.
    package func fail(_ message: String, at place: String) {
        engine.expectHome("#expect or #require")
        let problem = ExplorationProblem(.requirement, detail: message, place: place)
        engine.fail(problem, by: Self.taskName, message)
    }

    /// Fails the execution unless a condition holds; may be called anywhere in it.
    ///
    /// Shrinking treats failures from the same line as the same, whatever their messages. So check different rules on different
    /// lines.
    ///
    /// - Parameters:
    ///   - condition: The condition that must hold.
    ///   - message: The reason for the failure, for the report.
    ///   - fileID: The file of the requirement.
    ///   - line: The line of the requirement.
    /// - Throws: An ``ExplorationProblem`` with the message.
    public func require(
        _ condition: Bool, _ message: @autoclosure () -> String, fileID: StaticString = #fileID, line: Int = #line
    ) throws {
        engine.expectHome("simulation.require")
        engine.noteRequirement()
        guard !condition else { return }
        let problem = ExplorationProblem(.requirement, detail: message(), place: "\(fileID):\(line)")
        engine.fail(problem, by: Self.taskName, problem.detail)
        throw problem
    }
}
