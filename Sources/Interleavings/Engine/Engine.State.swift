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

    /// What can be run.
    enum Work: Sendable {
        case job(Job)
        case block(@Sendable () -> Void)
        /// A thread that stopped at an interleaving point, or waits for a lock.
        case thread(Worker)
    }

    /// A piece of work that may be picked.
    struct Entry: Sendable {
        let work: Work
        let lane: Int
        let task: Int
        /// The step in which it came.
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

    /// One execution; all of it belongs to whoever holds the engine's lock.
    struct State: Sendable {
        var chooser: Chooser
        var lanes: [Lane] = []
        var ready: [Entry] = []
        var timers: [Timer] = []
        var settlers: [Settler] = []
        var awake: [Awake] = []
        var now = Duration.zero
        /// The step in which the timers began to wait for the present deadline.
        var timeSince = 0
        /// The outcome is known; what is left only ends.
        var isWindingDown = false
        var isOver = false
        /// Where work runs that comes after that, and how much of it there was.
        var aftermath: DispatchQueue?
        var latePieces = 0

        /// The engine's numbers of the runtime's tasks.
        var taskNumbers: [UInt32: Int] = [:]
        /// The names of tasks by number; empty: it has none.
        var taskNames: [String] = []
        /// The name for the next task that is seen first; empty: none.
        var nextName = ""
        var timerCount = 0
        /// What was spawned, in that order, and how many of them have not ended.
        var spawned: [Spawned] = []
        var unfinished = 0

        var steps = 0
        /// Where the ending is given up.
        var endLimit = Int.max
        /// The task of the last step.
        var lastTask = Self.timeTask
        /// Indices into `ready`, and the tasks there: kept to be filled again.
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

        /// What is left of an execution that is over.
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
