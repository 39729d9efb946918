import Dispatch
import TokenServiceConcurrency

/// One execution: a pool of runnable work and one loop that picks what runs next.
///
/// Only picked work runs: on the engine's home thread, or on its controlled threads, one at a time. Work that any other
/// thread enqueues has escaped: a task awaited something outside the engine.
final class Engine: Sendable {
    let state: Lock<State>
    let time: TimeModel
    let stepLimit: Int
    /// Whether the execution records a trace.
    let records: Bool
    /// Threads on which synchronous code can stop between two accesses; `nil`: each step runs whole, on the home thread.
    let threads: ControlledThreads?
    /// Whether threads stop at interleaving points, and not only where they wait.
    let stopsAtPoints: Bool
    /// Keeps the choices so that they survive a crash.
    let blackBox: BlackBox?
    let watchdog: Watchdog?
    /// Signalled when work or a call arrives from outside.
    let outside = DispatchSemaphore(value: 0)
    /// The thread that runs the loop, and the steps if there are no controlled threads.
    let home = ThreadIdentity.current
    /// The executor that tasks prefer; it is created together with the engine.
    private let poolReference = Lock<PoolReference?>(nil)

    init(_ chooser: Chooser, _ settings: Settings, _ surroundings: Surroundings, records: Bool) {
        state = Lock(
            State(
                chooser: chooser, ordering: settings.ordering, machine: settings.machine, blackBox: surroundings.blackBox,
                omitted: settings.omitted, records: records))
        blackBox = surroundings.blackBox
        watchdog = surroundings.watchdog
        time = settings.time
        stepLimit = settings.stepLimit
        self.records = records
        threads = surroundings.threads
        stopsAtPoints = settings.granularity == .accesses
    }

    /// The common settings of an exploration's executions.
    struct Surroundings: Sendable {
        var threads: ControlledThreads?
        var blackBox: BlackBox?
        var watchdog: Watchdog?
    }

    private var session: (any DoorSession)? { state.withLock { $0.session } }

    var pool: PoolReference? { poolReference.withLock { $0 } }

    func setPool(_ executor: any TaskExecutor) {
        poolReference.withLock { $0 = PoolReference(executor) }
    }

    func addLane(_ name: String, _ order: Lane.Order) -> Int {
        state.withLock { $0.lanes.add(Lane(name: name, order: order)) }
    }

    /// Adds the lane of a queue; a serial queue acts like one task.
    func addQueue(_ name: String, _ order: Lane.Order, target: Int? = nil) -> Int {
        state.withLock { state in
            let task = order == .fifo ? state.newTask(named: name) : nil
            // Unlike other queues, the main queue belongs to the main actor.
            let hasOnePlace =
                order == .fifo && target.map { state.lanes[$0].task != nil || state.lanes[$0].order != .fifo } ?? false
            return state.lanes.add(Lane(name: name, order: order, target: target, hasOnePlace: hasOnePlace, task: task))
        }
    }

    /// Takes a job of a task or an actor.
    func enqueue(_ job: Job, lane pool: Int, in session: (any DoorSession)? = nil) {
        // A task that returns to an actor inside a function of the runtime enters the actor's queue, so it needs the actor's
        // turn, too.
        let actor = job.drainedActor.flatMap { (session ?? self.session)?.lane(of: $0) }
        let origin = origin
        // When a task hops to an actor, there is no current task as the actor's job arrives, and the job runs that task first.
        let isHop = job.identity == 0 && Job.hasNoCurrentTask
        let callSite = origin == .outside ? callSite : nil
        let isTaken = state.withLock { state in
            if job.identity != 0, job.identity == state.abandoned { return true }
            // A yield is not a separate step: the task can run from the next step on.
            if job.isYield, origin != .outside, state.phase != .over {
                state.resumptions.append(.yield(job, process: state.process))
                state.noteWait(.yield, of: state.lastTask)
                return true
            }
            if job.isDrain { state.choices.omit(actor == nil ? .queuedCalls : .queuedReturns) }
            state.endSleep(of: job.identity)
            let task = state.task(job.identity, hops: isHop)
            let process = job.identity == 0 ? state.process : state.tasks.process(of: task)
            return state.append(.job(job), Turn(lane: actor ?? pool), task: task, of: process, from: origin, callSite)
        }
        if !isTaken { runLate(.job(job), in: session) } else if origin == .outside { outside.signal() }
    }

    /// Takes a block of a queue.
    ///
    /// - Parameters:
    ///   - turn: Its place in the queue's lane.
    ///   - isTimed: Whether a timer sends it there.
    func enqueue(
        block: @escaping @Sendable () -> Void, _ turn: Turn, isTimed: Bool = false, in session: (any DoorSession)? = nil
    ) {
        let origin = origin
        let callSite = origin == .outside ? callSite : nil
        let isTaken = state.withLock { state in
            guard state.phase != .over else { return false }
            let lane = state.lanes[turn.lane]
            // Where a timed block comes is a choice, which is one between tasks.
            let task = (isTimed ? nil : lane.task) ?? state.newTask(named: lane.name)
            return state.append(
                .block(block), turn, isTimed: isTimed, task: task, of: state.process, from: origin, callSite)
        }
        if !isTaken { runLate(.block(block), in: session) } else if origin == .outside { outside.signal() }
    }
}

extension Engine.State {
    /// Returns the engine's number for a runtime task; for an actor's job, that of the task that hops there, if known.
    fileprivate mutating func task(_ identity: UInt32, hops: Bool) -> Int {
        if hops, lastTask != Self.timeTask { return lastTask }
        if let known = tasks.number(of: identity) { return known }
        let spawned = identity == 0 ? nil : tasks.announced
        let task = newTask(named: identity == 0 ? "actors" : spawned?.name ?? childName())
        tasks.identify(task, as: identity, in: spawned?.process ?? process)
        return task
    }

    /// Returns the name in a trace for a task that the code under test creates, such as a group's child.
    private mutating func childName() -> String {
        guard lastTask != Self.timeTask else { return "" }
        let parent = name(of: lastTask)
        return recorder?.childName(of: parent) ?? ""
    }

    /// - Parameter callSite: Names the function outside that makes it runnable, for the report.
    /// - Returns: Whether the work will run; `false` if the execution is over.
    fileprivate mutating func append(
        _ work: Engine.Work, _ turn: Engine.Turn, isTimed: Bool = false, task: Int, of process: Int?, from origin: Engine.Origin,
        _ callSite: (@Sendable () -> String?)?
    ) -> Bool {
        guard phase != .over else { return false }
        if origin == .outside {
            noteEscape("'\(name(of: task))' was made runnable by a thread that the explorer does not drive", in: callSite)
        }
        var entry = Engine.Entry(work: work, turn: turn, task: task, since: steps, process: process)
        if case .job(let job) = work, origin == .home, isInStep {
            (entry.priority, entry.isHop) = (job.priority, task == lastTask)
        }
        entry.isTimed = isTimed
        lanes.add(entry, isLate: origin == .sleeper)
        return true
    }
}

/// Work that arrives after the execution still runs, one piece at a time, so that nothing hangs.
extension Engine {
    /// Work beyond this limit is dropped, since it would never end.
    private static let lateWorkLimit = 100_000

    func runLate(_ work: Work, in session: (any DoorSession)? = nil) {
        let doors = doors(of: session)
        guard let lateQueue else { return }
        doors.away { lateQueue.async { doors.step { self.run(work) } } }
    }

    /// Ends a wait later, not at once: a loop of sleeps must suspend, or it would never release its thread.
    func endLate(_ suspension: Suspension) {
        lateQueue?.async { suspension.end(.cancelled) }
    }

    private var lateQueue: DispatchQueue? {
        state.withLock { state in
            state.lateWorkCount += 1
            guard state.lateWorkCount < Self.lateWorkLimit else { return nil }
            if let queue = state.lateQueue { return queue }
            let queue = DispatchQueue(label: "interleavings.late")
            state.lateQueue = queue
            return queue
        }
    }
}
