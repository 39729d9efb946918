import Dispatch
import TokenServiceConcurrency

/// One execution: a pool of runnable work and one loop that picks what runs next.
///
/// Nothing runs but what was picked. It lives on one thread, its home; with a crew also on the crew's threads, one at a
/// time. What is enqueued by any other thread has escaped: somebody awaited what the engine does not drive.
final class Engine: Sendable {
    let state: Lock<State>
    let time: TimeModel
    let stepLimit: Int
    /// Whether a trace is made.
    let records: Bool
    /// Threads for synchronous code that stops between two accesses; `nil`: each step runs whole, at home.
    let crew: Crew?
    /// Told of each escape.
    let outside = DispatchSemaphore(value: 0)
    private let home = ThreadIdentity.current

    init(_ chooser: Chooser, _ settings: Settings, crew: Crew?, records: Bool) {
        state = Lock(State(chooser: chooser, records: records))
        time = settings.time
        stepLimit = settings.stepLimit
        self.records = records
        self.crew = crew
    }

    func addLane(_ name: String, _ order: Lane.Order) -> Int {
        state.withLock { state in
            state.lanes.append(Lane(name: name, order: order))
            return state.lanes.count - 1
        }
    }

    private var isAtHome: Bool {
        let thread = ThreadIdentity.current
        return thread == home || crew.map { $0.isRunning(on: thread) } ?? false
    }

    /// Takes a job of a task or an actor.
    func enqueue(_ job: Job, lane: Int) {
        let isAtHome = isAtHome
        // Whoever hops to an actor is no current task any more when the actor's job comes, and the first to run in it.
        let isHop = job.identity == 0 && Job.hasNoCurrentTask
        let isTaken = state.withLock { state in
            // A yield is no step of its own; who yields can run from the next step on.
            if job.isYield, isAtHome, !state.isOver {
                state.awake.append(.yield(job))
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
    /// The number of a task by the runtime's; of an actor's job that of the task which hops there, as far as that is known.
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

/// What comes when the execution is over still ends, one piece at a time, so that nothing hangs.
extension Engine {
    /// What never ends is dropped after so many pieces.
    private static let mostLatePieces = 100_000

    func runLate(_ work: Work) {
        aftermath?.async { self.run(work) }
    }

    /// Not at once, which would not suspend: a loop that sleeps must not run hot for ever.
    func endLate(_ suspension: Suspension) {
        aftermath?.async { suspension.end(.cancelled) }
    }

    private var aftermath: DispatchQueue? {
        state.withLock { state in
            state.latePieces += 1
            guard state.latePieces < Self.mostLatePieces else { return nil }
            if let queue = state.aftermath { return queue }
            let queue = DispatchQueue(label: "interleavings.aftermath")
            state.aftermath = queue
            return queue
        }
    }
}
