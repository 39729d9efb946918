import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// Blocks the calling thread until a task has loaded the token, for old code that cannot `await`.
///
/// On a pool of two threads one caller is fine: the other thread loads. Two callers at once block both threads, and each waits
/// for a task that needs a free thread.
///
/// The bug sits in `wait()`: the pool has one thread for each of the machine's cores, and does not grow.
final class BlockingService: Sendable {
    private let loader: any TokenLoader
    private let executor: any TaskExecutor
    private let token: Lock<KeptToken>

    init(loader: some TokenLoader, clock: some Clock<Duration>, executor: any TaskExecutor) {
        self.loader = loader
        self.executor = executor
        token = Lock(KeptToken(clock: clock))
    }

    func retrieveToken() throws -> AccessToken? {
        if let token = token.withLock({ $0.valid }) { return token }
        let isLoaded = InterleavedSemaphore("loaded")
        Task(executorPreference: executor) {
            let loaded = try? await self.loader.loadToken(replacing: nil)
            self.token.withLock { $0.keep(loaded) }
            isLoaded.signal()
        }
        // This blocks the thread, and so everything that could have run on it.
        isLoaded.wait()
        return token.withLock { $0.valid }
    }
}

/// A pool with few threads, like Swift's own, where blocking a thread matters.
///
/// The simulation's own pool has as many threads as it needs. Here each job is announced to every thread, and the first that
/// is free runs it.
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
        // Each job is taken out once, and runs on the thread that took it.
        let job = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        unsafe job?.runSynchronously(on: asUnownedTaskExecutor())
    }
}

extension Exhibit {
    static let blockedPool = Exhibit(
        28, "Waiting by blocking a thread of the cooperative pool: exhaustion",
        source: "okta-mobile-swift PR#272; MSAL common PR#911: 64 threads", granularity: .accesses,
        broken: { simulation in
            let pool = NarrowPool(simulation, threads: 2)
            let loader = simulation.loader(of: simulation.server())
            let service = BlockingService(loader: loader, clock: simulation.clock, executor: pool)
            try await callersOnANarrowPool(simulation, pool) { try service.retrieveToken() }
        },
        mended: { simulation in
            let pool = NarrowPool(simulation, threads: 2)
            let service = simulation.service(executor: pool, loader: simulation.loader(of: simulation.server()))
            try await callersOnANarrowPool(simulation, pool) { try await service.retrieveToken() }
        })

    private static func callersOnANarrowPool(
        _ simulation: Simulation, _ pool: NarrowPool, _ retrieve: @escaping @Sendable () async throws -> AccessToken?
    ) async throws {
        for name in ["caller 1", "caller 2"] {
            simulation.spawn(name) {
                try await withTaskExecutorPreference(pool) {
                    simulation.log("asks for a token, on a thread of the pool")
                    let token = try await retrieve()
                    simulation.log("gets \(token?.value ?? "none")")
                }
            }.allowingError()
        }
        try await simulation.settle()
    }
}
