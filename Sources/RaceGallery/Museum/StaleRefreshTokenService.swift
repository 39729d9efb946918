import AccessTokens

/// Museum 24: invalidating during a refresh still stores the stale value.
///
/// A token is near its end; a refresh runs ahead. It reaches a server behind a cache, which sends the same token once more.
/// Meanwhile the resource server refuses that token; it is invalidated, compared and dropped, all as it should be. Then the
/// refresh ends and puts the refused token back, good for another hour.
///
/// Shipped: caffeine#193; the opposite mistake, a completed refresh that is discarded, as caffeine#1970. Sits: in the
/// refresh's last line, which asks nobody what was refused meanwhile.
actor StaleRefreshTokenService {
    private let loader: any TokenLoader
    private let executor: any TaskExecutor
    private let elapsed: @Sendable () -> Duration
    private var kept: (token: AccessToken, start: Duration)?
    private var load: Task<AccessToken, any Error>?

    init<C: Clock<Duration>>(loader: some TokenLoader, clock: C, executor: any TaskExecutor) {
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
