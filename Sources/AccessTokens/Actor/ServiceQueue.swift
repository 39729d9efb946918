import Dispatch
import TokenServiceConcurrency

/// The serial queue on which services do their own work: short steps, one after the other.
///
/// It needs no thread that a program can hold. A caller that blocks a thread takes it from Swift's pool, or from Dispatch's
/// concurrent queues, and both run out. A serial queue's thread comes from beyond that limit, and timers have a thread of their
/// own. So code that waits for a token with a semaphore, on as many threads as there are, delays neither its own answer nor
/// another caller's limit.
///
/// All services of a program share one, except those whose environment has an executor: their steps are short, and a program may
/// have a service for each of ten thousand users. Loaders and stores never run here; of a program's own
/// code only the clocks of its environment do, and the `deinit` of what a service is the last to hold.
package final class ServiceQueue: TaskExecutor {
    /// The queue of all services whose environment has no executor.
    package static let shared = ServiceQueue()
    /// The executor of the actors that run there.
    static let actors = Actors()

    /// Takes in the jobs of actors.
    ///
    /// The queue itself couldn't tell them from jobs outside every actor. If these ran as if they were on one, a task would take
    /// another turn in the queue for each asynchronous function that it enters: a callback's miss took ten turns, instead of five.
    final class Actors: SerialExecutor {
        func enqueue(_ job: consuming ExecutorJob) { ServiceQueue.shared.add(UnownedJob(job), isOnActor: true) }
    }

    private typealias Jobs = [(job: UnownedJob, isOnActor: Bool)]

    private struct Work: Sendable {
        var jobs: Jobs = []
        /// An empty list, which takes the place of `jobs` while these run.
        var next: Jobs = []
        /// Whether a block is on its way to run them.
        var isScheduled = false
    }

    /// How many jobs the list's memory is kept for.
    private static let few = 64

    // The class is a floor: behind a background task's step, an urgent caller would wait for a background thread.
    private let queue = DispatchQueue(label: "AccessTokens", qos: .userInitiated)
    private let work = Lock(Work())
    /// Runs the jobs; made once, since a block for each job costs more than the rest of its way.
    private let run: @Sendable @convention(block) () -> Void = { ServiceQueue.shared.runJobs() }

    private init() {}

    /// Takes in a job outside every actor; the Swift runtime calls this.
    package func enqueue(_ job: consuming ExecutorJob) { add(UnownedJob(job), isOnActor: false) }

    private func add(_ job: UnownedJob, isOnActor: Bool) {
        let isFirst = work.withLock { work in
            work.jobs.append((job, isOnActor))
            defer { work.isScheduled = true }
            return !work.isScheduled
        }
        if isFirst { queue.async(execute: run) }
    }

    private func runJobs() {
        var jobs: Jobs = []
        work.withLock { work in
            swap(&work.jobs, &jobs)
            swap(&work.jobs, &work.next)
        }
        for (job, isOnActor) in jobs {
            if isOnActor {
                unsafe job.runSynchronously(
                    isolatedTo: Self.actors.asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
            } else {
                unsafe job.runSynchronously(on: asUnownedTaskExecutor())
            }
        }
        if jobs.capacity > Self.few { jobs = [] } else { jobs.removeAll(keepingCapacity: true) }
        let hasMore = work.withLock { work in
            swap(&work.next, &jobs)
            work.isScheduled = !work.jobs.isEmpty
            return work.isScheduled
        }
        // Timers have their turn in between.
        if hasMore { queue.async(execute: run) }
    }

    /// Calls the program's code on a thread of its own: it may block, and callers may hold all threads of the pool.
    ///
    /// - Parameter code: Keeps the mark of the load that the current task is part of.
    package static func runOutside(_ code: @escaping @Sendable () -> Void) {
        let membership = LoadMembership.current
        DispatchQueue(label: "AccessTokenLoader").async { LoadMembership.$current.withValue(membership, operation: code) }
    }

    /// Whether the current task runs here when it is on no actor.
    package static var isPreferred: Bool {
        unsafe withUnsafeCurrentTask { task in
            guard let preferred = unsafe task?.unownedTaskExecutor else { return false }
            return unsafe preferred == shared.asUnownedTaskExecutor()
        }
    }

    /// Starts a task after a time, or earlier if the wall clock was set forward, and starts it again later.
    ///
    /// Dispatch's clock stands still while the machine sleeps, and the wall clock may be set back, so there is a timer on each. If
    /// both happen, the task starts when the rest of the time has passed on one of them. So `time` must be short.
    func run(after time: Duration, _ body: @escaping @Sendable () async -> Void) {
        // In two parts, since nanoseconds alone overflow where an Int has 32 bits.
        let (seconds, attoseconds) = max(time, .zero).components
        let whole = DispatchTimeInterval.seconds(Int(seconds))
        let rest = DispatchTimeInterval.nanoseconds(Int(attoseconds / 1_000_000_000))
        let start: @Sendable () -> Void = { Task.detached(on: self) { await body() } }
        queue.asyncAfter(deadline: .now() + whole + rest, execute: start)
        queue.asyncAfter(wallDeadline: .now() + whole + rest, execute: start)
    }
}

/// Stands in for a service that has an executor of its own: the service runs like this default actor.
actor DefaultIsolation {}
