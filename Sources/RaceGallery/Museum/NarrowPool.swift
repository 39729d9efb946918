import Interleavings
import TokenServiceConcurrency

/// A pool of few threads, as Swift's own: what blocks one of them makes it narrower.
///
/// The simulation's pool has a thread for everybody. This one takes from one line of jobs; each job is announced to every
/// thread, and the first that is free runs it.
final class NarrowPool: TaskExecutor {
    private let threads: [VirtualQueue]
    private let jobs = Lock<[UnownedJob]>([])

    init(_ simulation: Simulation, threads: Int) {
        self.threads = (1...threads).map { simulation.serialQueue("thread \($0)") }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        for thread in threads { thread.async { self.runNext() } }
    }

    private func runNext() {
        // Each job is taken out once, and run by whoever took it.
        let job = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        unsafe job?.runSynchronously(on: asUnownedTaskExecutor())
    }
}
