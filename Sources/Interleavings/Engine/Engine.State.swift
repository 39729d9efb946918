import Dispatch

extension Engine {
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
        /// Whether a timer sent it to a queue: it may also enter the queue later, behind work that came there meanwhile.
        var isTimed = false
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

    /// The phases of an execution.
    enum Phase: Sendable {
        case running
        /// The outcome is known; the remaining tasks are only run to completion.
        case windingDown
        case over
    }

    /// The state of one execution, guarded by the engine's lock.
    struct State: Sendable {
        var choices: Choices
        var lanes: Lanes
        var clock: Clock
        var tasks = Tasks()
        /// The threads whose step sleeps.
        var sleepers: [Sleeper] = []
        /// Names the functions in which stopped threads wait, by their tasks, if the execution makes a report.
        var callSites: [Int: @Sendable () -> String?] = [:]
        /// The threads whose sleeping step was given up.
        var lostThreads: [Sleeper] = []
        var idleWaiters: [IdleWaiter] = []
        var resumptions: [Resumption] = []
        /// The doors of the execution; `nil`: it has none.
        var session: (any DoorSession)?
        var phase = Phase.running
        /// The queue for work that arrives after the execution, and how much of it has arrived.
        var lateQueue: DispatchQueue?
        var lateWorkCount = 0

        /// The scenario's own task in a state that is over, if it hadn't ended; it never continues.
        var abandoned: UInt32 = 0
        var processes: [Process] = []
        /// The process of the current step; `nil`: none.
        var process: Int?
        /// The last step in which a process was thawed.
        var thawedAt = 0

        let machine: MachineModel
        /// Whether a step is running; between steps, sleeps and waits end in any order.
        var isInStep = false
        /// The step before which a replay stops; `nil`: it has already stopped, or runs to its end.
        var stop: Int?
        /// Where the scenario's own task goes on only when nothing else can; `nil`: nowhere.
        let hold: Replay.Hold?
        var isHolding = false
        /// The step at which winding down is given up.
        var endLimit = Int.max
        /// The task of the last step.
        var lastTask = Self.timeTask
        /// Indices into `ready`, and the tasks there; kept to reuse their storage.
        var candidates: [Int] = []
        var candidateTasks: [Int] = []

        /// The spawned tasks that never begin.
        let omitted: Set<String>
        var recorder: Recorder?
        var failure: (any Error)?
        var escape: (detail: String, tasks: [String], callSite: (@Sendable () -> String?)?)?

        init(
            chooser: Chooser, ordering: ActorOrdering = .arrival, machine: MachineModel = .fair, blackBox: BlackBox? = nil,
            omitted: Set<String> = [], records: Bool, now: Duration = .zero
        ) {
            choices = Choices(chooser, blackBox)
            (lanes, clock) = (Lanes(ordering), Clock(now: now))
            self.machine = machine
            self.omitted = omitted
            recorder = records ? Recorder() : nil
            let replay: Replay? = if case .replay(let replay) = chooser { replay } else { nil }
            (stop, hold) = (replay?.stop, replay?.hold)
        }

        /// The state of an execution that is over.
        init(endedAt time: Duration) {
            self.init(chooser: .replay(Replay(choices: [])), records: false, now: time)
            phase = .over
        }

        var steps: Int { choices.steps }

        /// The first spawned task whose error fails the execution: nothing read the error, and everything else succeeded.
        var taskWithUnreadError: Engine.Spawned? {
            guard failure == nil, escape == nil, tasks.unfinished == 0 else { return nil }
            return tasks.spawned.first { $0.unreadError != nil }
        }

        func name(of task: Int) -> String { tasks.name(of: task) }

        /// Returns the step's task if it is a child, since children inherit the spawned task's values; otherwise the spawned
        /// task.
        func author(_ spawned: String?) -> String {
            let name = name(of: lastTask)
            return recorder?.trace.children.contains(name) == true ? name : spawned ?? name
        }

        mutating func newTask(named name: String) -> Int {
            recorder?.name(name)
            return tasks.add(named: name)
        }
    }
}
