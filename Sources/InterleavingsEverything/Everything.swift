public import Interleavings
import RuntimeDoors

extension Driving {
    /// All code: plain tasks, default and global actors, the main actor, and every kind of sleep in virtual time.
    ///
    /// Nothing is injected into the code under test. `Date()`, `ContinuousClock.now` and `SuspendingClock.now` show the simulation's
    /// time inside it, and random numbers, such as those of `UUID()` and `shuffled()`, are the same in each schedule. So far this works on Linux, with Swift 6.2 and 6.3. Before the first schedule the explorer checks that it does in the
    /// running program; otherwise it throws an `ExplorationProblem` that names what is missing, and runs nothing.
    ///
    /// One exploration at a time drives everything in a process; ordinary tests run beside it. Threads, Dispatch queues and
    /// networks are not driven: starting a thread or a connection, or putting a block into a queue, is an escape.
    /// ``everythingAndQueues`` also drives the queues.
    public static var everything: Driving { .everything(through: ProgramDoors(.all)) }

    /// All code, and the queues of Dispatch: blocks, `sync`, groups, semaphores and work items, in virtual time.
    ///
    /// Like ``everything``, and each block is a step that runs in its queue: `dispatchPrecondition`, `getSpecific` and the label
    /// work as usual. A thread that calls `sync` or waits for a group, a semaphore or a work item stops there, while others
    /// continue. If what it waits for never happens, that is a deadlock; a deadline ends the wait in virtual time. Each step has
    /// a thread of its own, so schedules are slower than those of ``everything``.
    ///
    /// Blocks of the main queue belong to the main actor, but don't run on the main thread. A `DispatchSource`, `DispatchIO`,
    /// `suspend()` of a queue and an inactive queue are not driven: creating or calling one is an escape, and so is starting a
    /// thread.
    public static var everythingAndQueues: Driving { .everything(through: ProgramDoors(.allAndQueues)) }
}

/// Some of the doors of this program.
struct Doors: OptionSet {
    let rawValue: UInt32

    static let tasks = Doors(rawValue: UInt32(doors_tasks))
    static let hops = Doors(rawValue: UInt32(doors_hops))
    static let main = Doors(rawValue: UInt32(doors_main))
    static let time = Doors(rawValue: UInt32(doors_time))
    static let leaving = Doors(rawValue: UInt32(doors_leaving))
    static let pool = Doors(rawValue: UInt32(doors_pool))
    static let sleeps = Doors(rawValue: UInt32(doors_sleeps))

    /// Plain locks, where threads can stop inside a step.
    static let locks = Doors(rawValue: UInt32(doors_locks))

    static let random = Doors(rawValue: UInt32(doors_random))

    static let all: Doors = [.tasks, .hops, .main, .time, .leaving, .pool, .sleeps, .locks, .random]
    /// The doors that make each call of a default actor a separate step.
    static let actors: Doors = .hops

    static let blocks = Doors(rawValue: UInt32(doors_blocks))
    static let sync = Doors(rawValue: UInt32(doors_sync))
    static let groups = Doors(rawValue: UInt32(doors_groups))
    static let semaphores = Doors(rawValue: UInt32(doors_semaphores))
    static let items = Doors(rawValue: UInt32(doors_items))
    /// The main queue's description.
    static let place = Doors(rawValue: UInt32(doors_place))

    static let queues: Doors = [.blocks, .sync, .groups, .semaphores, .items, .place]
    static let allAndQueues = all.union(queues)
}

/// The doors of this program.
///
/// `Driving.linked` looks it up by its name.
struct ProgramDoors: LinkedDoors {
    private let doors: Doors

    init(_ doors: Doors) {
        self.doors = doors
    }

    static var forActors: (any RuntimeDoors)? { linked(.actors) }

    static var forEverything: (any RuntimeDoors)? { linked(.all) }

    private static func linked(_ doors: Doors) -> (any RuntimeDoors)? {
        #if os(Linux)
        ProgramDoors(doors)
        #else
        nil
        #endif
    }

    var name: String { lettingThreadsWait ? "everythingAndQueues" : "everything" }

    var lettingThreadsWait: Bool { !doors.isDisjoint(with: .queues) }

    func check() throws {
        try (doors == .actors ? DoorCheck.ofActors : lettingThreadsWait ? DoorCheck.ofAllAndQueues : DoorCheck.ofAll).get()
    }

    var namesFunctions: Bool { TaskLayout.isRight }

    // The return address is that of the instruction after the call.
    func functionName(at address: UInt) -> String? { CallSite.name(of: address + 1) }

    func line(at address: UInt) -> String? { CodeLine.find(address) }

    func open(for engine: any DrivenEngine) -> (any TaskExecutor, any DoorSession) {
        DrivenSession.open(doors, for: engine)
    }

    /// The hook that the program lacks; `nil`: none.
    static let missing: String? = {
        let callbacks = unsafe doors_callbacks(
            actors: ActorExecutor.table,
            leave: { owner, deed in unsafe DrivenSession.at(owner).engine.noteLeaving(String(cString: deed)) },
            sleep: { owner, job, delay in
                let job = unsafe ExecutorJob(unsafeBitCast(job, to: UnownedJob.self))
                unsafe DrivenSession.at(owner).engine.sleep(job, for: .nanoseconds(delay))
            },
            global: executorWords(globalConcurrentExecutor).identity)
        return unsafe (doors_install(callbacks) ?? doors_install_locks(DrivenLocks.callbacks)).map { unsafe String(cString: $0) }
    }()

    /// The hook for queues that the program lacks; `nil`: none.
    static let missingForQueues: String? = unsafe doors_install_queues(DrivenQueues.callbacks).map { unsafe String(cString: $0) }
}
