import Dispatch
import TokenServiceConcurrency

/// One execution: a pool of runnable work and one loop that picks what runs next.
///
/// Only picked work runs: on the engine's home thread, or on its controlled threads, one at a time. Work that any other
/// thread enqueues has escaped: a task awaited something that the engine does not drive.
final class Engine: Sendable {
    let state: Lock<State>
    let time: TimeModel
    let stepLimit: Int
    /// Whether the execution records a trace.
    let records: Bool
    /// Threads on which synchronous code can stop between two accesses; `nil`: each step runs whole, on the home thread.
    let threads: ControlledThreads?
    /// Signalled at each escape.
    let outside = DispatchSemaphore(value: 0)
    private let home = ThreadIdentity.current

    init(_ chooser: Chooser, _ settings: Settings, threads: ControlledThreads?, records: Bool) {
        state = Lock(State(chooser: chooser, records: records))
        time = settings.time
        stepLimit = settings.stepLimit
        self.records = records
        self.threads = threads
    }

    func addLane(_ name: String, _ order: Lane.Order) -> Int {
        state.withLock { state in
            state.lanes.append(Lane(name: name, order: order))
            return state.lanes.count - 1
        }
    }

    private var isAtHome: Bool {
        let thread = ThreadIdentity.current
        return thread == home || threads.map { $0.isRunning(on: thread) } ?? false
    }

    /// Takes a job of a task or an actor.
    func enqueue(_ job: Job, lane: Int) {
        let isAtHome = isAtHome
        // A task that hops to an actor is not the current task when the actor's job arrives, and runs first in that job.
        let isHop = job.identity == 0 && Job.hasNoCurrentTask
        let isTaken = state.withLock { state in
            // A yield is not a step of its own: the task can run from the next step on.
            if job.isYield, isAtHome, !state.isOver {
                state.resumptions.append(.yield(job))
                return true
            }
            let task = state.task(job.identity, hops: isHop)
            return state.append(.job(job), lane: lane, task: task, isAtHome: isAtHome)
        }
        if !isTaken { runLate(.job(job)) } else if !isAtHome { outside.signal() }
    }

    /// Takes a block of a queue.
    ///
    /// - Parameters:
    ///   - task: The queue's, if it is like one task.
    ///   - name: The block's name, if it is like a task of its own.
    func enqueue(block: @escaping @Sendable () -> Void, lane: Int, task: Int?, name: String = "") {
        let isAtHome = isAtHome
        let isTaken = state.withLock { state in
            state.append(.block(block), lane: lane, task: task ?? state.newTask(named: name), isAtHome: isAtHome)
        }
        if !isTaken { runLate(.block(block)) } else if !isAtHome { outside.signal() }
    }
}

extension Engine.State {
    /// Returns the engine's number for a runtime task; for an actor's job, that of the task that hops there, if known.
    fileprivate mutating func task(_ identity: UInt32, hops: Bool) -> Int {
        if hops, lastTask != Self.timeTask { return lastTask }
        if let known = taskNumbers[identity] { return known }
        let task = newTask(named: identity == 0 ? "actors" : nextName)
        if identity != 0 { nextName = "" }
        taskNumbers[identity] = task
        return task
    }

    /// - Returns: Whether it will be run; `false` if the execution is over.
    fileprivate mutating func append(_ work: Engine.Work, lane: Int, task: Int, isAtHome: Bool) -> Bool {
        guard !isOver else { return false }
        if !isAtHome, escape == nil {
            escape = "'\(name(of: task))' was made runnable by a thread that the explorer does not drive"
        }
        ready.append(Engine.Entry(work: work, lane: lane, task: task, since: steps))
        return true
    }
}

/// Work that arrives after the execution still runs, one piece at a time, so that nothing hangs.
extension Engine {
    /// Work beyond this limit is dropped: it would never end.
    private static let lateWorkLimit = 100_000

    func runLate(_ work: Work) {
        lateQueue?.async { self.run(work) }
    }

    /// Ends a wait later, not at once: a loop that sleeps must suspend, or it would never let go of its thread.
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
