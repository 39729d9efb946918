import AccessTokens
import Interleavings

/// Shares one load among its callers, and gives them an error if it takes more than thirty seconds.
///
/// When the time is up, the service checks that the callers still wait for the same load, and compares the number of waiters.
/// Caller 1 starts the load and the time limit. Meanwhile caller 2 joins. The time is up, the number has changed, so this must be
/// another load: neither gets the error, and both wait until the load ends.
///
/// The bug sits in the `guard` of `limit(_:waitersThen:)`: a load needs a number of its own.
actor CountingTimeoutService {
    struct TimedOut: Error {}

    private let loader: any TokenLoader
    private let clock: any Clock<Duration>
    private let executor: (any TaskExecutor)?
    private var token: KeptToken
    private var waiters: [CheckedContinuation<AccessToken, any Error>] = []

    init(loader: some TokenLoader, clock: some Clock<Duration>, executor: (any TaskExecutor)?) {
        self.loader = loader
        self.clock = clock
        self.executor = executor
        token = KeptToken(clock: clock)
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        return try await withCheckedThrowingContinuation { continuation in
            waiters.append(continuation)
            guard waiters.count == 1 else { return }
            let load = Task(executorPreference: executor) { await self.load() }
            Task(executorPreference: executor) { await self.limit(load, waitersThen: 1) }
        }
    }

    private func load() async {
        do {
            let loaded = try await loader.loadToken(replacing: nil)
            token.keep(loaded)
            answer(.success(loaded))
        } catch {
            answer(.failure(error))
        }
    }

    private func limit(_ load: Task<Void, Never>, waitersThen count: Int) async {
        try? await clock.sleep(for: .seconds(30))
        guard waiters.count == count else { return }
        answer(.failure(TimedOut()))
        load.cancel()
    }

    private func answer(_ result: Result<AccessToken, any Error>) {
        let waiters = waiters
        self.waiters = []
        for waiter in waiters { waiter.resume(with: result) }
    }
}

extension Exhibit {
    static let disabledTimeLimit = Exhibit(
        15, "The second caller disables the time limit that all share",
        source: "firebase PR#16665",
        broken: { simulation in
            let service = CountingTimeoutService(
                loader: loaderOfASilentServer(simulation), clock: simulation.seams.clock, executor: simulation.seams.executor)
            try await callersOfASilentServer(simulation, secondAfter: .seconds(10)) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let service = simulation.service(loader: loaderOfASilentServer(simulation))
            try await callersOfASilentServer(simulation, secondAfter: .seconds(10)) { try await service.retrieveToken() }
        })
}
