import Dispatch

extension Engine {
    /// The place of a piece of work: the pool, an actor or a queue.
    struct Lane: Sendable {
        enum Order: Sendable {
            /// Any number at once, in any order.
            case concurrent
            /// One at a time: an actor, whose queue has priorities. Jobs that steps send there with the same priority keep their order.
            case serial
            /// One at a time, in order of arrival: a queue.
            case fifo
            /// In order of arrival, any number at once; a barrier runs alone.
            case barriers
        }

        let name: String
        let order: Order
        /// The target queue's lane, in which its work runs as well; `nil`: it has none.
        var target: Int?
        /// Whether all its work has one place in the target queue, and which one.
        var hasOnePlace = false
        var place = 0
        /// The task of a queue that acts like one task; `nil`: each piece of work is a separate task.
        var task: Int?
        /// Whether the running work excludes all other work.
        var isBusy = false
        /// How many pieces of work that allow others are running, if counted.
        var shares = 0
        /// The searches in which work and a barrier of this lane were last found.
        var foundAt = -1
        var barrierFoundAt = -1
        /// The step whose jobs were last found, and their priorities.
        var foundSince = -1
        var foundPriorities: [UInt8] = []
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
        /// Whether the work is a stopped thread; kept, since to ask the work costs a reference.
        let isThread: Bool
        let turn: Turn
        let task: Int
        /// The step in which it arrived.
        let since: Int
        /// The condition that a stopped thread waits for; `nil`: it can continue at any time.
        var wait: Wait?
        /// The priority of a job that a step has sent to an actor; `nil`: something else.
        var priority: UInt8?
        /// Whether it is the step's own task, which went to the actor as its last act: its thread may have been held up before that,
        /// so it may come later than others that were sent after it.
        var isHop = false
        /// The simulated process whose work it is; `nil`: none.
        var process: Int?
        /// Its number in the order in which work became runnable.
        var arrival = 0

        init(work: Work, turn: Turn, task: Int, since: Int, wait: Wait? = nil, process: Int? = nil) {
            self.work = work
            isThread = if case .thread = work { true } else { false }
            (self.turn, self.task, self.since) = (turn, task, since)
            (self.wait, self.process) = (wait, process)
        }

        /// Where it runs next.
        var lane: Int { claim?.lane ?? turn.lane }
        /// The turn that a stopped thread waits for, in addition to the one that it has.
        var claim: Turn? { if case .turn(let turn) = wait { turn } else { nil } }
        var awaitedTurn: Turn { claim ?? turn }
        /// Whether it waits for a turn, rather than continuing in one.
        var isWaiting: Bool { !isThread || claim != nil }

        func isBarrier(in lane: Int) -> Bool { self.lane == lane && awaitedTurn.isBarrier }
    }

    /// A place in a lane.
    struct Turn: Sendable {
        let lane: Int
        /// Whether it must run alone in a lane that has barriers.
        var isBarrier = false
    }

    /// The condition that a stopped thread waits for.
    enum Wait: Sendable {
        case gate(any Gate)
        /// A turn in a queue, on the thread's own stack.
        case turn(Turn)
    }

    /// A task that was spawned.
    struct Spawned: Sendable {
        let name: String
        /// Where it was spawned.
        let place: String
        /// The simulated process that it belongs to; `nil`: none.
        let process: Int?
        /// The runtime's task, once it has begun.
        var identity: TaskIdentity?
        /// The same as a job, which is alive until the task ends.
        var job: UnownedJob?
        /// Whether it has ended, or was killed.
        var hasEnded = false
        /// Whether this task waited for something unknown when the engine reported that nothing could run.
        var isDoubted = false
        var cancel: (@Sendable () -> Void)?
        /// Whether something asked for its result.
        var isRead = false
        /// The error that it threw, unless it was read, or is the error of the task's own cancellation.
        var unreadError: (any Error)?
    }

    /// The phases of an execution.
    enum Phase: Sendable {
        case running
        /// The outcome is known; the remaining tasks are only run to completion.
        case windingDown
        case over
    }

    /// Whether the scenario checked a requirement, and ended, before any task that it spawned had begun.
    enum Haste: Sendable {
        /// No task has begun, and no requirement was checked since they were spawned.
        case possible
        /// The scenario checked a requirement before a task had begun.
        case required
        /// It also ended before one began.
        case ended
        /// One has begun before that.
        case ruledOut
    }

    /// The state of one execution, guarded by the engine's lock.
    struct State: Sendable {
        var chooser: Chooser
        var lanes: [Lane] = []
        var ready: [Entry] = []
        /// How often work became runnable.
        var arrivals = 0
        /// Whether a queue runs its work in another.
        var hasTargets = false
        /// The threads whose step sleeps, and what they made runnable.
        var sleepers: [Sleeper] = []
        var readyBySleepers: [Entry] = []
        /// Names the functions in which stopped threads wait, by their tasks, if the execution makes a report.
        var callSites: [Int: @Sendable () -> String?] = [:]
        /// The threads whose sleeping step was given up.
        var lostThreads: [Sleeper] = []
        var timers: [Timer] = []
        var idleWaiters: [IdleWaiter] = []
        var resumptions: [Resumption] = []
        var now = Duration.zero
        /// How many runtime sleeps began after the outcome was known.
        var sleepsAtEnd = 0
        /// The doors of the execution; `nil`: it has none.
        var session: (any DoorSession)?
        /// The step in which the timers began to wait for the present deadline.
        var timeSince = 0
        var phase = Phase.running
        /// The queue for work that arrives after the execution, and how much of it has arrived.
        var lateQueue: DispatchQueue?
        var lateWorkCount = 0

        /// The engine's numbers of the runtime's tasks.
        var taskNumbers: [UInt32: Int] = [:]
        /// The names of tasks by number; an empty name: the task has none.
        var taskNames: [String] = []
        /// The spawned task that the next task seen for the first time represents; `nil`: none.
        var announced: Int?
        /// The scenario's own task: the runtime's number and the engine's.
        var root: (identity: UInt32, number: Int)?
        /// The scenario's own task in a state that is over, if it hadn't ended; it never continues.
        var abandoned: UInt32 = 0
        var timerCount = 0
        /// The simulated processes, and the tasks that belong to one.
        var processes: [Process] = []
        var taskProcesses: [Int: Int] = [:]
        /// The process of the current step; `nil`: none.
        var process: Int?
        /// The last step in which a process was thawed.
        var thawedAt = 0
        /// The spawned tasks in order, and how many of them have not ended.
        var spawned: [Spawned] = []
        var unfinished = 0
        var haste = Haste.possible

        let ordering: ActorOrdering
        let machine: MachineModel
        var steps = 0
        /// Whether a step is running; between steps, sleeps and waits end in any order.
        var isInStep = false
        /// The step before which a replay stops; `nil`: it has already stopped, or runs to its end.
        var stop: Int?
        /// Where the scenario's own task goes on only when nothing else can; `nil`: nowhere.
        let hold: Replay.Hold?
        var isHolding = false
        /// The step at which winding down is given up.
        var endLimit = Int.max
        /// An overdue task was passed over, as only an exhaustive exploration does.
        var isUnfair = false
        /// The task of the last step.
        var lastTask = Self.timeTask
        /// Indices into `ready`, and the tasks there; kept to reuse their storage.
        var candidates: [Int] = []
        var candidateTasks: [Int] = []
        /// How often candidates were looked for.
        var searches = 0

        private(set) var choices: [Int] = []
        let blackBox: BlackBox?
        /// The spawned tasks that never begin.
        let omitted: Set<String>
        var omissions: Omissions = []
        var fingerprint = Fingerprint()
        var recorder: Recorder?
        var failure: (any Error)?
        var escape: (detail: String, tasks: [String], callSite: (@Sendable () -> String?)?)?

        init(
            chooser: Chooser, ordering: ActorOrdering = .arrival, machine: MachineModel = .fair, blackBox: BlackBox? = nil,
            omitted: Set<String> = [], records: Bool
        ) {
            self.chooser = chooser
            self.ordering = ordering
            self.machine = machine
            self.blackBox = blackBox
            self.omitted = omitted
            recorder = records ? Recorder() : nil
            let replay: Replay? = if case .replay(let replay) = chooser { replay } else { nil }
            (stop, hold) = (replay?.stop, replay?.hold)
        }

        /// The state of an execution that is over.
        init(endedAt time: Duration) {
            self.init(chooser: .replay(Replay(choices: [])), records: false)
            (now, phase) = (time, .over)
        }

        mutating func append(choice: Int) {
            choices.append(choice)
            blackBox?.append(choice)
        }

        /// The first spawned task whose error fails the execution: nothing read the error, and everything else succeeded.
        var taskWithUnreadError: Engine.Spawned? {
            guard failure == nil, escape == nil, unfinished == 0 else { return nil }
            return spawned.first { $0.unreadError != nil }
        }

        func name(of task: Int) -> String {
            guard taskNames.indices.contains(task), !taskNames[task].isEmpty else { return "task \(task)" }
            return taskNames[task]
        }

        /// Returns the step's task if it is a child, since children inherit the spawned task's values; otherwise the spawned
        /// task.
        func author(_ spawned: String?) -> String {
            let name = name(of: lastTask)
            return recorder?.trace.children.contains(name) == true ? name : spawned ?? name
        }

        mutating func newTask(named name: String) -> Int {
            taskNames.append(name)
            recorder?.name(name)
            return taskNames.count - 1
        }
    }
}
