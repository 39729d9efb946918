import AccessTokens
import AccessTokensTesting
import Interleavings

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Shares one load among its callers, and answers them before it saves and keeps the token.
///
/// The load ends. The waiting callers are answered at once, so that the disk does not delay them; then the token is saved,
/// and then it is kept. Meanwhile one of the answered callers asks again, finds no token and no load, and starts a second
/// load, which revokes the token that it has just been given.
///
/// The bug sits in `finish`, between the resumes and the assignment, where it awaits.
actor EarlyWakingService {
    private let loader: any TokenLoader
    private let store: any TokenStore
    private let executor: (any TaskExecutor)?
    private var token: KeptToken
    private var waiters: [CheckedContinuation<AccessToken, any Error>] = []

    init(loader: some TokenLoader, store: some TokenStore, clock: some Clock<Duration>, executor: (any TaskExecutor)?) {
        self.loader = loader
        self.store = store
        self.executor = executor
        token = KeptToken(clock: clock)
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        return try await withCheckedThrowingContinuation { continuation in
            waiters.append(continuation)
            guard waiters.count == 1 else { return }
            let load = Task(executorPreference: executor) { [loader] in try await loader.loadToken(replacing: nil) }
            Task(executorPreference: executor) { await self.finish(await load.result) }
        }
    }

    private func finish(_ result: Result<AccessToken, any Error>) async {
        let answered = waiters
        waiters = []
        for waiter in answered { waiter.resume(with: result) }
        guard let loaded = try? result.get() else { return }
        // The race: an answered caller may ask again before this is done.
        try? await store.save(StoredToken(loaded, received: .distantPast))
        token.keep(loaded)
    }
}

extension Exhibit {
    static let earlyWakeUp = Exhibit(
        17, "A waiter is woken before the value is published", source: "google-auth-java#692", strategy: .pct(),
        broken: { simulation in
            let server = simulation.server()
            let service = EarlyWakingService(
                loader: simulation.loader(of: server), store: InMemoryTokenStore(),
                clock: simulation.seams.clock, executor: simulation.seams.executor)
            try await askTwice(simulation, loads: { server.loadsStarted }) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server()
            let service = simulation.service(store: InMemoryTokenStore(), loader: simulation.loader(of: server))
            try await askTwice(simulation, loads: { server.loadsStarted }) { try await service.retrieveToken() }
        })

    /// Each caller that gets a token asks again, for the next request.
    private static func askTwice(
        _ simulation: Simulation, loads: @escaping @Sendable () -> Int,
        _ retrieve: @escaping Retrieve
    ) async throws {
        for name in ["caller 1", "caller 2"] {
            simulation.spawn(name) {
                for request in 1...2 { try await simulation.ask(retrieve, saying: "asks for request \(request)") }
            }
        }
        try await simulation.settle()
        try simulation.require(loads() == 1, "a caller that has the token finds it when it asks again: one load, not \(loads())")
    }
}
