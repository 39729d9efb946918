extension TokenService {
    /// The token to hand out right now, if there is one; starts nothing and never waits.
    ///
    /// Reads a copy that every change renews before its callers are answered. Any thread may call it at any time.
    public nonisolated var cachedToken: AccessToken? {
        let (token, expiry) = lobby.withLock { ($0.snapshot.servable?.token, $0.snapshot.servable?.expiry) }
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
        let (token, generation) = peek()
        if let token { return token }
        guard let limit else { return try await join(seen: generation) }
        return try await join(seen: generation, within: limit)
    }

    /// A valid token, or `nil` with the generation to join with.
    ///
    /// The first caller in the soft window starts a refresh.
    @usableFromInline
    package nonisolated func peek() -> (token: AccessToken?, generation: Int) {
        let (token, calmUntil, generation) = lobby.withLock {
            ($0.snapshot.servable?.token, $0.snapshot.calmUntil, $0.snapshot.generation)
        }
        guard let token else { return (nil, generation) }
        // The clock after the copy: a token read earlier is never judged by a time before it.
        if clock.now() < calmUntil { return (token, generation) }
        let seen = examine()
        return (seen.token, seen.generation)
    }

    /// The number of the token to hand out, if there is nothing else to do, for those who may have that token already.
    ///
    /// It copies nothing that threads share: two that count references to one token cost each other more than all the rest.
    package nonisolated func calmPublication() -> Int? {
        let (publication, calmUntil) = lobby.withLock { ($0.snapshot.publication, $0.snapshot.calmUntil) }
        return clock.now() < calmUntil ? publication : nil
    }

    /// The same as ``peek()`` when there may be more to do than to hand out the token, with its number.
    package nonisolated func examine() -> (token: AccessToken?, generation: Int, publication: Int?) {
        let seen = lobby.withLock { $0.snapshot }
        let now = clock.now()
        let token = seen.token(at: now)
        if token != nil, seen.isRefreshDue(at: now) { claimRefresh(at: now) }
        return (token, seen.generation, seen.publication)
    }

    /// Joins the load for a batch of callbacks; `answer` is called once, on the actor, and must only pass the result on.
    package func join(
        callers: Int, seen generation: Int, priority: TaskPriority? = nil,
        then answer: @escaping @Sendable (Result<AccessToken, any Error>) -> Void
    ) {
        let priority = priority ?? Task.currentPriority
        let result: Result<AccessToken, TokenServiceError>? = step { machine, now in
            machine.retrieve(callers: callers, seen: generation, at: now)
        } admission: { retrieval, lobby in
            switch retrieval {
            case .answer(let result): return result
            case .wait:
                lobby.admit(.callback(answer), priority: priority)
                return nil
            }
        }
        guard let result else { return raisePriority(to: priority) }
        answer(result.mapError { dated($0, at: clock.now()) as any Error })
    }

    /// The first caller in the soft window starts the refresh, and doesn't wait for it.
    private nonisolated func claimRefresh(at now: Duration) {
        let claimed = lobby.withLock { lobby in
            guard lobby.snapshot.isRefreshDue(at: now) else { return false }
            lobby.snapshot.servable?.refreshFrom = nil
            return true
        }
        guard claimed else { return }
        Task.detached(executorPreference: executor, priority: Task.currentPriority) {
            await self.step { $0.refreshAhead(at: $1) }
        }
    }
}
