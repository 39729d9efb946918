import AccessTokens
import AccessTokensTesting
import Interleavings

/// Publishes the outcome of the latest load, whatever it is; a load ahead of expiry runs in the background.
///
/// The token is good for another ten minutes when caller 1 starts its refresh. The server is down, the refresh fails, and
/// its failure is published in place of the token. Caller 2 gets an error although there was a valid token.
///
/// The bug sits where `outcome` is set without checking what it displaces.
actor DisplacingRefreshService {
    private let loader: any TokenLoader
    private let elapsed: @Sendable () -> Duration
    private let executor: (any TaskExecutor)?
    private var outcome: Result<AccessToken, any Error>
    private var refreshFrom: Duration
    private var isRefreshing = false

    private static let refreshAfter = Duration.seconds(45 * 60)
    private static let pauseAfterFailure = Duration.seconds(120)

    init<C: Clock<Duration>>(_ token: AccessToken, loader: some TokenLoader, clock: C, executor: (any TaskExecutor)?) {
        self.loader = loader
        self.executor = executor
        outcome = .success(token)
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
        refreshFrom = Self.refreshAfter
    }

    func retrieveToken() throws -> AccessToken {
        if elapsed() >= refreshFrom, !isRefreshing {
            isRefreshing = true
            Task(executorPreference: executor) { await self.refresh() }
        }
        return try outcome.get()
    }

    private func refresh() async {
        do {
            outcome = .success(try await loader.loadToken(replacing: nil))
            refreshFrom = elapsed() + Self.refreshAfter
        } catch {
            outcome = .failure(error)
            refreshFrom = elapsed() + Self.pauseAfterFailure
        }
        isRefreshing = false
    }
}

extension Exhibit {
    static let displacedToken = Exhibit(
        6, "A refresh ahead that fails displaces a token that is still valid",
        source: "google-cloud-rust#5809; soto-core [R]",
        broken: { simulation in
            let service = DisplacingRefreshService(
                .signedIn, loader: failing(simulation), clock: simulation.seams.clock, executor: simulation.seams.executor)
            try await callersDuringAnOutage(simulation) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let service = simulation.service(loader: failing(simulation))
            await service.replace(with: .signedIn)
            try await callersDuringAnOutage(simulation) { try await service.retrieveToken() }
        })

    private static func failing(_ simulation: Simulation) -> NarratedLoader {
        simulation.loader { _, _ in throw ScriptedFailure() }
    }

    private static func callersDuringAnOutage(_ simulation: Simulation, _ retrieve: @escaping Retrieve) async throws {
        try await simulation.clock.sleep(for: .seconds(50 * 60))
        simulation.log("the server is down, the token still valid for ten minutes")
        _ = await simulation.callers(1...1, retrieve)[0].result
        try await simulation.clock.sleep(for: .seconds(1))
        let second = await simulation.callers(2...2, retrieve)[0].result
        try simulation.require((try? second.get()) != nil, "a valid token is handed out, whatever happens to its refresh")
    }
}
