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
/// have a service for each of ten thousand users. Loaders, stores and other code of the program never run here.
package final class ServiceQueue: SerialExecutor, TaskExecutor {
    /// The queue of all services whose environment has no executor.
    package static let shared = ServiceQueue(label: "AccessTokens")

    private let queue: DispatchQueue

    package init(label: String) {
        // The class is a floor: behind a background task's step, an urgent caller would wait for a background thread.
        queue = DispatchQueue(label: label, qos: .userInitiated)
    }

    /// Takes in a job; the Swift runtime calls this.
    ///
    /// As a job of both kinds of executor it enters the actor without a second turn in the queue.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async {
            unsafe job.runSynchronously(isolatedTo: self.asUnownedSerialExecutor(), taskExecutor: self.asUnownedTaskExecutor())
        }
    }

    /// Whether the current task runs here when it is on no actor.
    package static var isPreferred: Bool {
        unsafe withUnsafeCurrentTask { task in
            guard let preferred = unsafe task?.unownedTaskExecutor else { return false }
            return unsafe preferred == shared.asUnownedTaskExecutor()
        }
    }

    /// Starts a task after a time, or a little earlier if the wall clock was moved.
    ///
    /// Dispatch's clock stands still while the machine sleeps, and the wall clock may be set back. Two timers are enough: one of
    /// the two clocks has reached the time.
    func run(after time: Duration, _ body: @escaping @Sendable () async -> Void) {
        // A longer time comes as several: a number of nanoseconds must not overflow.
        let nanoseconds = min(max(time, .zero), .seconds(1 << 30)) / .nanoseconds(1)
        let interval = DispatchTimeInterval.nanoseconds(Int(nanoseconds))
        let start: @Sendable () -> Void = { Task.detached(on: self) { await body() } }
        queue.asyncAfter(deadline: .now() + interval, execute: start)
        queue.asyncAfter(wallDeadline: .now() + interval, execute: start)
    }
}

/// A loader whose loads begin on the service's own queue, since it leaves that queue by itself before it calls foreign code.
package protocol SelfStartingLoader: TokenLoader {}

/// Stands in for a service that has an executor of its own: the service runs like this default actor.
actor DefaultIsolation {}
