/// Which code an exploration drives.
public struct Driving: Sendable {
    /// The doors through which all code is driven; `nil`: code must prefer the simulation's executor.
    private let doors: (any RuntimeDoors)?

    /// Code that prefers the simulation's executor: tasks that are given it, and what they start with `async let` and groups.
    ///
    /// The code under test takes an executor, a clock and a queue as parameters; its plain `Task {}` and `Task.sleep` calls
    /// escape. In a program that links the module `InterleavingsEverything`, each call of a default actor is a separate step.
    /// In any other, the calls that wait for an actor run in one step, and the summary says so.
    public static let preferred = Driving(doors: nil)

    /// All code, through open doors.
    package static func everything(through doors: any RuntimeDoors) -> Driving { Driving(doors: doors) }

    /// Whether all code is driven, even if it takes no parameters from the simulation.
    package var isEverything: Bool { doors != nil }

    /// The name of this way of driving, unless it is the default.
    var name: String? { doors?.name }

    /// Whether the code may block its thread.
    var needsThreads: Bool { doors?.lettingThreadsWait ?? false }

    /// Returns the doors to open: the requested ones, or else this program's doors for default actors; `nil`: none.
    ///
    /// - Throws: An ``ExplorationProblem`` that names a door that can't be opened.
    func checkedDoors() throws -> (any RuntimeDoors)? {
        let doors = doors ?? (Overrides.current.isUnaided ? nil : Self.linked)
        try doors?.check()
        return doors
    }

    /// Runs a scenario under one schedule, on this thread, through doors that were not checked.
    ///
    /// - Returns: The kinds of order that such a schedule can't have.
    @discardableResult
    package func attempt(_ scenario: @escaping @Sendable (Simulation) async throws -> Void) throws -> [Coverage.Gap] {
        var exploration = Exploration(settings: Settings(driving: self, doors: doors), countsFailures: false, scenario: scenario)
        return try exploration.run(.random(schedules: 1)).coverage.gaps
    }

    /// The doors for default actors that this program has; `nil`: it doesn't link `InterleavingsEverything`.
    ///
    /// The runtime looks their type up by its mangled name. So nothing runs when a program is loaded, and linking is enough.
    package static let linked = linkedDoors?.forActors

    /// All code, if the program links `InterleavingsEverything` and the platform has its doors.
    package static var linkedEverything: Driving? { linkedDoors?.forEverything.map { .everything(through: $0) } }

    private static let linkedDoors = _typeByName("23InterleavingsEverything12ProgramDoorsV") as? any LinkedDoors.Type
}

/// The doors that a program has because it links them.
package protocol LinkedDoors: RuntimeDoors {
    /// The doors that make each call of a default actor a step; `nil`: this platform has none.
    static var forActors: (any RuntimeDoors)? { get }
    /// The doors that drive all code; `nil`: this platform has none.
    static var forEverything: (any RuntimeDoors)? { get }
}

/// Doors: hooks through which a simulation drives code that isn't written for it.
///
/// They replace functions of the runtime. So they are in a separate module, and a program that doesn't link it keeps its runtime.
package protocol RuntimeDoors: Sendable {
    /// The name under which ``Driving`` offers them.
    var name: String { get }
    /// Whether driven code may block its thread, so that each step needs its own thread.
    var lettingThreadsWait: Bool { get }
    /// Throws an ``ExplorationProblem`` that names the doors that can't be opened.
    func check() throws
    /// Whether the functions in which tasks continue can be named.
    var namesFunctions: Bool { get }
    /// Names a function by the address of its code; `nil`: it is unknown, or not the program's.
    func functionName(at address: UInt) -> String?
    /// Finds the line of code at an address, with its file and directory; `nil`: the program has no debug information.
    func line(at address: UInt) -> String?
    /// Opens the doors for one execution, and makes the executor of its tasks, which keeps them.
    func open(for engine: any DrivenEngine) -> (any TaskExecutor, any DoorSession)
}

/// The doors of one execution.
package protocol DoorSession: AnyObject, Sendable {
    /// Runs a step on this thread, with the doors open.
    func step(at now: Duration, _ body: () -> Void)
    /// Records the calls of this thread; the closure then returns the name of the function that leaves the simulation.
    ///
    /// Finding the name takes a while, so it is done for the report only. `nil`: no function has to be named.
    func callSite() -> (@Sendable () -> String?)?
    /// The advice for an escape; `nil`: the advice of the preferred way of driving.
    var remedy: String? { get }
    /// The functions in which a task continues, as addresses of their code, innermost first; empty if unknown.
    func functions(of task: UnownedJob) -> [UInt]
    /// The function of the program in which a task continues, with its line; `nil`: unknown.
    func whereabouts(of task: UnownedJob) -> String?
    /// Returns the lane of a default actor; adds it if nothing has come to the actor yet.
    func lane(of actor: AnyObject) -> Int
    /// Runs the explorer's own code inside a step, with the doors closed.
    func away<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result
}

/// The interface of an engine to the doors.
package protocol DrivenEngine: AnyObject, Sendable {
    /// Adds the lane of the pool.
    func addPool() -> Int
    /// Adds the lane of an actor.
    ///
    /// - Parameter inOrder: Whether its jobs run in the order of their arrival, as on the main actor.
    func addActor(named name: String, inOrder: Bool) -> Int
    /// Adds a job of an actor's lane.
    func enqueue(_ job: consuming ExecutorJob, lane: Int, on executor: some SerialExecutor, in session: any DoorSession)
    /// Adds a job of the pool's lane.
    func enqueue(_ job: consuming ExecutorJob, lane: Int, on executor: some TaskExecutor, in session: any DoorSession)
    /// Adds the job that ends a sleep of the current task.
    func sleep(_ job: consuming ExecutorJob, for duration: Duration)
    /// Adds the lane of a queue.
    ///
    /// - Parameter target: The lane of its target queue; `nil`: it has none.
    func addQueue(named name: String, isConcurrent: Bool, target: Int?) -> Int
    /// Adds a block of a queue; it enters the queue when the delay is over.
    func enqueue(
        _ block: @escaping @Sendable () -> Void, lane: Int, isBarrier: Bool, after delay: Duration, in session: any DoorSession)
    /// Runs a body on this thread when it is its turn in a queue's lane.
    func inTurn(lane: Int, isBarrier: Bool, _ body: () -> Void)
    /// Stops this thread until a gate is open or a duration has passed.
    func wait(for gate: any Gate, _ duration: Duration?)
    /// Whether its steps have threads of their own, which can stop.
    var stopsThreads: Bool { get }
    /// The task whose step this thread runs, by the engine's number; `nil`: none, or the thread can't stop.
    var runningTask: Int? { get }
    /// Whether this thread can stop inside a step.
    var canStop: Bool { get }
    /// Whether a thread, by the system's number, has stopped inside a step and keeps what it holds.
    func hasStopped(_ thread: Int32) -> Bool
    /// Stops this thread, at the granularity of accesses, before a call whose effect other steps may see.
    func stop()
    /// Stops this thread, if others slept in the kernel, after a call that may have woken them.
    func stopForSleepers()
    /// Notes an action of the step for the report.
    func note(_ text: @autoclosure () -> String)
    /// Notes that a step leaves the simulation.
    ///
    /// - Parameter deed: The current task's action, such as "started a thread".
    func noteLeaving(_ deed: String)
}
