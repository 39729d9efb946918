import AccessTokens
import AccessTokensTesting
import Interleavings

/// Refreshes ahead of expiry, and drops a refused token if it is the current one.
///
/// A token is near its end, and a refresh runs. It reaches a server behind a cache, which sends the same token once more.
/// Meanwhile the resource server refuses that token; it is compared and dropped, as it should be. Then the refresh ends and
/// puts the refused token back, good for another hour. So did caffeine#193; caffeine#1970 is the opposite mistake, a
/// completed refresh that is discarded.
///
/// The bug sits in the refresh's last line, which does not ask what was refused meanwhile.
actor StaleRefreshService {
    private let loader: any TokenLoader
    private let executor: (any TaskExecutor)?
    private let elapsed: @Sendable () -> Duration
    private var kept: (token: AccessToken, start: Duration)?
    private var load: Task<AccessToken, any Error>?

    init<C: Clock<Duration>>(loader: some TokenLoader, clock: C, executor: (any TaskExecutor)?) {
        self.loader = loader
        self.executor = executor
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
    }

    func retrieveToken() async throws -> AccessToken {
        guard let kept, let lifetime = kept.token.lifetime, elapsed() < kept.start + lifetime else {
            return try await refresh().value
        }
        // Ahead of its end: this caller doesn't wait.
        if elapsed() > kept.start + lifetime * 3 / 4 { _ = refresh() }
        return kept.token
    }

    func invalidate(_ rejected: AccessToken) {
        if kept?.token.value == rejected.value { kept = nil }
    }

    private func refresh() -> Task<AccessToken, any Error> {
        if let load { return load }
        let load = Task(executorPreference: executor) { try await self.renew() }
        self.load = load
        return load
    }

    private func renew() async throws -> AccessToken {
        defer { load = nil }
        let start = elapsed()
        let token = try await loader.loadToken(replacing: nil)
        // The race: this very token may have been refused since the load began.
        kept = (token, start)
        return token
    }
}

extension Exhibit {
    static let staleRefresh = Exhibit(
        24, "Invalidating during a refresh still stores the stale value; a completed refresh is discarded",
        source: "caffeine#193; caffeine#1970",
        broken: { simulation in
            let server = simulation.server()
            let service = StaleRefreshService(
                loader: simulation.loader(of: server), clock: simulation.seams.clock, executor: simulation.seams.executor)
            try await aRefusalDuringARefresh(simulation, server) {
                try await service.retrieveToken()
            } invalidate: {
                await service.invalidate($0)
            }
        },
        mended: { simulation in
            let server = simulation.server()
            let service = simulation.service(loader: simulation.loader(of: server))
            try await aRefusalDuringARefresh(simulation, server) {
                try await service.retrieveToken()
            } invalidate: {
                await service.invalidate($0)
            }
        })

    /// Ahead of expiry a caller's request is refused, while the server's cache still has the refused token.
    private static func aRefusalDuringARefresh(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping Retrieve,
        invalidate: @escaping @Sendable (AccessToken) async -> Void
    ) async throws {
        let first = try await retrieve()
        try await simulation.clock.sleep(for: .seconds(3000))
        server.answersRepeatedToken = true
        simulation.spawn("caller 1") {
            try await simulation.ask(retrieve, saying: "asks, and so starts a refresh ahead")
        }
        simulation.spawn("caller 2") {
            // Its request takes as long as the refresh.
            try await simulation.clock.sleep(for: .seconds(1))
            server.revoke(first)
            server.answersRepeatedToken = false
            simulation.log("is refused with \(first.value), invalidates it")
            await invalidate(first)
        }
        try await simulation.settle()
        simulation.spawn("caller 3") {
            let token = try await simulation.ask(retrieve)
            try simulation.require(token.value != first.value, "a refused token is never handed out again")
        }
        try await simulation.settle()
    }
}
