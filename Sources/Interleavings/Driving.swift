/// What an exploration drives.
public struct Driving: Sendable {
    /// The doors by which all code comes in; `nil`: code must prefer the simulation's executor.
    private let doors: (any RuntimeDoors)?

    /// Code that prefers the simulation's executor: tasks that are given it, and what they start with `async let` and groups.
    ///
    /// The code under test takes an executor, a clock and a queue as parameters; its plain `Task {}` and `Task.sleep` escape. In a
    /// program that links the module `InterleavingsEverything`, each call of a default actor is a step of its own. In any other,
    /// the calls that wait for an actor run in one step, and the summary's coverage says so.
    public static let preferred = Driving(doors: nil)

    /// All code, through open doors.
    package static func everything(through doors: any RuntimeDoors) -> Driving { Driving(doors: doors) }

    /// Whether code needs no seam.
    package var isEverything: Bool { doors != nil }

    /// The name of the way, where it isn't the usual one.
    var name: String? { doors?.name }

    /// Whether the code may block its thread.
    var needsThreads: Bool { doors?.lettingThreadsWait ?? false }

    /// Returns the doors to open: those that are asked for, or else those that this program has for default actors; `nil`: none.
    ///
    /// - Throws: An ``ExplorationProblem`` that names a door that is shut.
    func checkedDoors() throws -> (any RuntimeDoors)? {
        let doors = doors ?? (Overrides.current.isUnaided ? nil : Self.linked)
        try doors?.check()
        return doors
    }

    /// Runs a scenario under one schedule, on this thread, through doors that were not checked.
    ///
    /// - Returns: The orders that no such schedule can have.
    @discardableResult
    package func attempt(_ scenario: @escaping @Sendable (Simulation) async throws -> Void) throws -> [Coverage.Gap] {
        var exploration = Exploration(settings: Settings(driving: self, doors: doors), countsFailures: false, scenario: scenario)
        return try exploration.run(.random(schedules: 1)).coverage.gaps
    }

    /// The doors for default actors that this program has; `nil`: it doesn't link `InterleavingsEverything`.
    ///
    /// The runtime is asked for their type by its mangled name. So nothing runs when a program is loaded, and linking is enough.
    package static let linked = (_typeByName("23InterleavingsEverything12ProgramDoorsV") as? any LinkedDoors.Type)?.forActors
}

/// The doors that a program has because it links them.
package protocol LinkedDoors: RuntimeDoors {
    /// Those that make each call of a default actor a step; `nil`: they aren't made for this platform.
    static var forActors: (any RuntimeDoors)? { get }
}

/// The ways by which code comes into a simulation that knows nothing of it.
///
/// They replace functions of the runtime. So a module of their own has them, and a program that doesn't link it keeps its runtime.
package protocol RuntimeDoors: Sendable {
    /// The name under which ``Driving`` offers them.
    var name: String { get }
    /// Whether code that comes in may wait on its thread, so that each step needs one of its own.
    var lettingThreadsWait: Bool { get }
    /// Throws an ``ExplorationProblem`` that names the doors that are shut.
    func check() throws
    /// Whether the functions in which tasks go on can be named.
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
    /// Takes down the calls of this thread, for a report; what it returns names the function that makes the step leave.
    ///
    /// To name it takes a while, so that is done when the report is made. `nil`: no function is to be named.
    func callSite() -> (@Sendable () -> String?)?
    /// What to do about an escape; `nil`: what the preferred way needs.
    var remedy: String? { get }
    /// The functions in which a task goes on, as addresses of their code, the innermost first; empty where that isn't known.
    func functions(of task: UnownedJob) -> [UInt]
    /// The function of the program in which a task goes on, with its line; `nil`: it is unknown.
    func whereabouts(of task: UnownedJob) -> String?
    /// The lane of a default actor; `nil`: none is known.
    func knownLane(of actor: AnyObject) -> Int?
    /// Runs the explorer's own code inside a step, with the doors shut.
    func away<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result
}

/// What the doors ask of an engine.
package protocol DrivenEngine: AnyObject, Sendable {
    /// Adds the lane of the pool.
    func addPool() -> Int
    /// Adds the lane of an actor.
    ///
    /// - Parameter inOrder: Whether its jobs run in the order in which they come, as those of the main actor do.
    func addActor(named name: String, inOrder: Bool) -> Int
    /// Takes a job of an actor's lane.
    func enqueue(_ job: consuming ExecutorJob, lane: Int, on executor: some SerialExecutor, in session: any DoorSession)
    /// Takes a job of the pool's lane.
    func enqueue(_ job: consuming ExecutorJob, lane: Int, on executor: some TaskExecutor, in session: any DoorSession)
    /// Takes the job that ends a sleep of the current task.
    func sleep(_ job: consuming ExecutorJob, for duration: Duration)
    /// Adds the lane of a queue.
    ///
    /// - Parameter target: The lane of the queue in which it runs its blocks; `nil`: it has none of its own.
    func addQueue(named name: String, isConcurrent: Bool, target: Int?) -> Int
    /// Takes a block of a queue; it comes into the queue when the delay is over.
    func enqueue(
        _ block: @escaping @Sendable () -> Void, lane: Int, isBarrier: Bool, after delay: Duration, in session: any DoorSession)
    /// Runs a body in its turn in a queue's lane, on this thread.
    ///
    /// - Parameter body: Gets `false` if it runs out of turn, because the execution ends and no turn would come.
    func inTurn(lane: Int, isBarrier: Bool, _ body: (_ isFree: Bool) -> Void)
    /// Stops this thread until a gate is open, a time is over or the execution ends.
    func wait(for gate: any Gate, _ duration: Duration?)
    /// Whether this thread can stop on its way.
    var canStop: Bool { get }
    /// Stops this thread, at the granularity of accesses: other steps may see what it does next.
    func stop()
    /// Notes for the report what the step does.
    func note(_ text: @autoclosure () -> String)
    /// Whether the outcome is known, so that a wait may end before its time.
    var isWindingDown: Bool { get }
    /// Notes that a step leaves the simulation.
    ///
    /// - Parameter deed: What the current task did, such as "started a thread".
    func noteLeaving(_ deed: String)
}
