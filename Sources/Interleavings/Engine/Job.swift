/// A job and where it must run.
///
/// Safe because it runs exactly once: the loop runs only what it has taken out of the state.
@safe struct Job: Sendable {
    @safe private enum Place {
        case task(UnownedTaskExecutor)
        case actor(UnownedSerialExecutor, pool: PoolReference?)
        /// On no particular executor, as for the runtime's jobs that end a sleep.
        case anywhere
    }

    private let job: UnownedJob
    private let place: Place

    init(_ job: consuming ExecutorJob, on executor: some TaskExecutor) {
        self.job = UnownedJob(job)
        unsafe place = .task(executor.asUnownedTaskExecutor())
    }

    /// - Parameter pool: The executor that the job's task prefers, which the runtime compares with the current one at a hop.
    ///   Without it, a call that stays on the actor, such as `withTaskCancellationHandler`, would enter its queue again, and
    ///   others could run in between.
    init(_ job: consuming ExecutorJob, on executor: some SerialExecutor, pool: PoolReference?) {
        self.job = UnownedJob(job)
        unsafe place = .actor(executor.asUnownedSerialExecutor(), pool: pool)
    }

    init(sleep job: consuming ExecutorJob) {
        self.job = UnownedJob(job)
        place = .anywhere
    }

    /// The runtime's number of the job's task; 0: the job belongs to an actor.
    var identity: UInt32 { kind == 0 ? word(1) : 0 }

    /// The job as a task; `nil` if it isn't one.
    var task: UnownedJob? { kind == 0 ? job : nil }

    /// Whether the job only makes a task runnable again that has yielded.
    var isYield: Bool { kind == 195 }

    /// Whether the job drains the queue of a default actor: any number of calls, one after the other.
    var isDrain: Bool { (192...194).contains(kind) }

    /// The default actor whose queue the job drains, if that is the job's only purpose; `nil`: it drains none.
    ///
    /// Such a job stores the actor after the fields that every job has. If a runtime changes that, the check of the doors fails.
    /// Source: swift/stdlib/public/Concurrency/Actor.cpp, `class ProcessOutOfLineJob`.
    var drainedActor: AnyObject? {
        guard kind == 193 else { return nil }
        let address = unsafe unsafeBitCast(job, to: UnsafeRawPointer.self)
        return unsafe address.load(fromByteOffset: 8 * MemoryLayout<UnsafeRawPointer>.size, as: Unmanaged<AnyObject>.self)
            .takeUnretainedValue()
    }

    var priority: UInt8 { job.priority.rawValue }

    private var kind: UInt32 { word(0) & 0xff }

    /// Reads one of the two words after a job's header and the scheduler's own: its flags, of which the last byte is the
    /// kind, and its number.
    ///
    /// The number is public only as text, and the kind isn't public at all. Safe because the job is alive and has at least these
    /// words. The layout is part of the runtime's stable ABI, and a test checks it. Source: swift/include/swift/ABI/Task.h,
    /// `class Job`, and MetadataValues.h, `enum class JobKind`.
    private func word(_ index: Int) -> UInt32 {
        let address = unsafe unsafeBitCast(job, to: UnsafeRawPointer.self)
        let offset = unsafe 4 * MemoryLayout<UnsafeRawPointer>.size + index * MemoryLayout<UInt32>.size
        return unsafe address.load(fromByteOffset: offset, as: UInt32.self)
    }

    /// The runtime's number of the current task; 0: there is none.
    static var currentTask: UInt32 { current?.identity ?? 0 }

    /// The current task, which is a job; `nil`: there is none.
    static var current: Job? {
        unsafe withUnsafeCurrentTask { task in
            guard let task = unsafe task else { return nil }
            return unsafe Job(task: unsafeBitCast(task, to: UnownedJob.self))
        }
    }

    private init(task: UnownedJob) {
        job = task
        place = .anywhere
    }

    static var hasNoCurrentTask: Bool { unsafe withUnsafeCurrentTask { unsafe $0 == nil } }

    func run() {
        switch place {
        case .task(let executor): unsafe job.runSynchronously(on: executor)
        case .actor(let executor, let pool?): unsafe job.runSynchronously(isolatedTo: executor, taskExecutor: pool.executor)
        case .actor(let executor, nil): unsafe job.runSynchronously(on: executor)
        // The generic executor: two words of zero.
        case .anywhere: unsafe job.runSynchronously(on: unsafeBitCast((0, 0), to: UnownedSerialExecutor.self))
        }
    }
}

/// The executor that the tasks of an execution prefer.
///
/// Safe because it is used only for the jobs of those tasks, which retain it.
@safe struct PoolReference: Sendable {
    fileprivate let executor: UnownedTaskExecutor

    init(_ executor: any TaskExecutor) {
        unsafe self.executor = executor.asUnownedTaskExecutor()
    }
}

/// The pool's executor: any number of tasks at once, in any order.
final class PoolExecutor: TaskExecutor {
    private let engine: Engine
    private let lane: Int

    init(_ engine: Engine) {
        self.engine = engine
        lane = engine.addLane("pool", .concurrent)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        engine.enqueue(Job(job, on: self), lane: lane)
    }
}

/// An actor's executor: one job at a time.
final class LaneExecutor: SerialExecutor {
    private let engine: Engine
    private let lane: Int

    init(_ engine: Engine, _ name: String, _ order: Engine.Lane.Order) {
        self.engine = engine
        lane = engine.addLane(name, order)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        engine.enqueue(Job(job, on: self, pool: engine.pool), lane: lane)
    }
}
