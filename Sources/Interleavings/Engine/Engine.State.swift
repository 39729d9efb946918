import Dispatch

extension Engine {
    /// Where a piece of work belongs: the pool, an actor or a queue.
    struct Lane: Sendable {
        enum Order: Sendable {
            /// Any number at once, in any order.
            case concurrent
            /// One at a time, in any order: an actor, whose queue knows priorities.
            case serial
            /// One at a time, in order of arrival: a queue.
            case fifo
        }

        let name: String
        let order: Order
        var isBusy = false
        /// The step in which a candidate of this lane was last found.
        var foundAt = -1
    }

    /// Runnable work.
    enum Work: Sendable {
        case job(Job)
        case block(@Sendable () -> Void)
        /// A thread that stopped at an interleaving point, or waits for a lock.
        case thread(ControlledThread)
    }

    /// A piece of work that may be picked.
    struct Entry: Sendable {
        let work: Work
        let lane: Int
        let task: Int
        /// The step in which it arrived.
        let since: Int
        /// The lock it waits for.
        var lock: InterleavedLock.Gate?
    }

    /// A task that was spawned.
    struct Spawned: Sendable {
        let name: String
        var hasEnded = false
        var cancel: (@Sendable () -> Void)?
    }

    /// The state of one execution, guarded by the engine's lock.
    struct State: Sendable {
        var chooser: Chooser
        var lanes: [Lane] = []
        var ready: [Entry] = []
        var timers: [Timer] = []
        var idleWaiters: [IdleWaiter] = []
        var resumptions: [Resumption] = []
        var now = Duration.zero
        /// The step in which the timers began to wait for the present deadline.
        var timeSince = 0
        /// The outcome is known; the remaining tasks are only brought to their ends.
        var isWindingDown = false
        var isOver = false
        /// Runs the work that arrives after the execution, and how much of it there was.
        var lateQueue: DispatchQueue?
        var lateWorkCount = 0

        /// The engine's numbers of the runtime's tasks.
        var taskNumbers: [UInt32: Int] = [:]
        /// The names of tasks by number; empty: it has none.
        var taskNames: [String] = []
        /// The name for the next task that is seen first; empty: none.
        var nextName = ""
        var timerCount = 0
        /// The spawned tasks in order, and how many of them have not ended.
        var spawned: [Spawned] = []
        var unfinished = 0

        var steps = 0
        /// The step at which the ending is given up.
        var endLimit = Int.max
        /// The task of the last step.
        var lastTask = Self.timeTask
        /// Indices into `ready`, and the tasks there; kept to reuse their storage.
        var candidates: [Int] = []
        var candidateTasks: [Int] = []

        var choices: [Int] = []
        var fingerprint = Fingerprint()
        var recorder: Recorder?
        var failure: (any Error)?
        var escape: String?

        init(chooser: Chooser, records: Bool) {
            self.chooser = chooser
            recorder = records ? Recorder() : nil
        }

        /// The state of an execution that is over.
        init(endedAt time: Duration) {
            self.init(chooser: .replay(Replay(choices: [])), records: false)
            (now, isWindingDown, isOver) = (time, true, true)
        }

        func name(of task: Int) -> String {
            guard taskNames.indices.contains(task), !taskNames[task].isEmpty else { return "task \(task)" }
            return taskNames[task]
        }

        mutating func newTask(named name: String) -> Int {
            taskNames.append(name)
            recorder?.name(name)
            return taskNames.count - 1
        }
    }
}
