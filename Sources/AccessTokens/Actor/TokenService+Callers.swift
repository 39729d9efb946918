extension TokenService {
    /// The token to hand out right now, if there is one; starts nothing and never waits.
    ///
    /// Reads a copy that every change renews before its callers are answered. Any thread may call it at any time.
    public nonisolated var cachedToken: AccessToken? {
        let (token, expiry) = lobby.withLock { ($0.snapshot.cached?.token, $0.snapshot.cached?.expiry) }
        return expiry.map { clock.now() < $0 } ?? true ? token : nil
    }

    /// Returns a valid access token: the cached one at once, else that of the load which all callers share.
    ///
    /// A valid token costs a lock and a clock reading: no suspension, no allocation, also for a cancelled caller. In its
    /// soft window a call starts one refresh in the background, and still returns at once. Otherwise the call joins the
    /// load that runs, or starts one; callers are answered in the order of their arrival. A caller that is cancelled
    /// leaves at once and alone; the load goes on for the others.
    ///
    /// - Parameter limit: How long this caller waits at most, in the service's clock; `nil`: as long as the load may take.
    ///   With zero or less, a call that finds no valid token starts nothing.
    /// - Throws: ``TokenServiceError``; `CancellationError` if the caller is cancelled while it waits, or before a miss.
    @inlinable
    public nonisolated(nonsending) func retrieveToken(within limit: Duration? = nil) async throws -> AccessToken {
        // Only this is inlined into callers: a hit is then one synchronous call, and needs no frame of an async one.
        let (token, generation) = lookUp()
        if let token { return token }
        guard let limit else { return try await join(seen: generation) }
        return try await join(seen: generation, within: limit)
    }

    /// A valid token, or `nil` with the generation to join with.
    ///
    /// The first caller in the soft window starts a refresh.
    @usableFromInline
    package nonisolated func lookUp() -> (token: AccessToken?, generation: Int) {
        let (token, nothingDueUntil, generation) = lobby.withLock {
            ($0.snapshot.cached?.token, $0.snapshot.nothingDueUntil, $0.snapshot.generation)
        }
        guard let token else { return (nil, generation) }
        // The clock after the copy: a token read earlier is never judged by a time before it.
        if clock.now() < nothingDueUntil { return (token, generation) }
        let seen = lookUpAndRefresh()
        return (seen.token, seen.generation)
    }

    /// The same as ``lookUp()`` when there may be more to do than to hand out the token, with its number.
    package nonisolated func lookUpAndRefresh() -> (token: AccessToken?, generation: Int, publication: Int?) {
        let seen = lobby.withLock { $0.snapshot }
        let now = clock.now()
        let token = seen.token(at: now)
        if token != nil, seen.isRefreshDue(at: now) { claimRefresh(at: now) }
        return (token, seen.generation, seen.publication)
    }

    /// The first caller in the soft window starts the refresh, and doesn't wait for it.
    private nonisolated func claimRefresh(at now: Duration) {
        guard lobby.withLock({ $0.claimRefresh(at: now) }) else { return }
        Task.detached(executorPreference: executor, priority: Task.currentPriority) {
            await self.step { $0.refreshAhead(at: $1) }
        }
    }
}
