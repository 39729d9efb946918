import TokenServiceConcurrency

extension TokenService {
    /// Drops a token that a resource server refused, if it is still the current one.
    ///
    /// Call it with the token that the refused request carried, if you don't send the request again. If you do, call
    /// ``retrieveToken(insteadOf:within:)`` instead, which also keeps the request's user. A token that is no longer current is
    /// only remembered, so that a late refusal never drops a fresh token; a refused token (the last 8, until they expire) is
    /// never handed out again. The next caller loads, or joins the refresh that already runs. Refusals cause at most 5 loads in
    /// 30 s; then callers get ``TokenServiceError/Code/tooManyInvalidations``. The refresh token is kept. Concurrent calls with
    /// one token have the effect of one call.
    ///
    /// Source: RFC 6750 §3.1 (`invalid_token`).
    public nonisolated func invalidate(_ rejected: AccessToken) async {
        await visit { $0.refuse(rejected) }
    }

    /// Installs a new token for the same principal, after a sign-in or an extended consent.
    ///
    /// Everything that began before is fenced off; waiting callers get the new token. Its lifetime counts from now. An expired
    /// token (a lifetime of zero, or one that passes while it is saved) is only a grant. A load with it starts at once (in a
    /// program's first minute, with the next caller), and waiting callers keep waiting. Clears back-off and refusals. For a
    /// change of user, call ``reset()`` first.
    ///
    /// The replacement takes effect at once. With a store the token is saved before any caller gets it, and this call returns
    /// when it has been saved, or after 5 s; then callers get the token even if it hasn't been saved.
    ///
    /// - Parameter token: The new token.
    /// - Returns: The tokens given up, and whether the store has the new token.
    @discardableResult
    public nonisolated func replace(with token: AccessToken) async -> SessionChange {
        await end(of: visit { $0.put(token) })
    }

    /// Signs out: drops token and grant, and fences off everything that began before.
    ///
    /// Calls that start after it took effect see no token, error or event from before. Waiting callers get
    /// ``TokenServiceError/Code/reset`` at once; loads are cancelled and their results discarded. Afterwards the service is
    /// empty, not locked: the next call loads with no previous token.
    ///
    /// The fence takes effect at once, whatever happens to the store. The call only waits, 5 s at most, for the store to return
    /// and remove its token.
    ///
    /// - Returns: The tokens given up, whose refresh tokens you may want to revoke (RFC 7009), and whether the store has
    ///   removed its token.
    public nonisolated func reset() async -> SessionChange {
        await end(of: visit { $0.signOut() })
    }

    /// Ends every pause after failures, even after a refused grant: the user tapped “try again”.
    ///
    /// Starts nothing by itself: the next caller starts a load. The limit on loads caused by refusals stays.
    public nonisolated func retryNow() async {
        await visit { $0.endPauses() }
    }

    /// Returns a stream of the events from now on, for logs and metrics.
    ///
    /// Every call creates its own stream with a bounded buffer: a slow reader loses the oldest events and doesn't delay other
    /// readers. Streams end when the service is released.
    ///
    /// - Parameter limit: How many events are kept for a slow reader, at least 1.
    public nonisolated func events(bufferingNewest limit: Int = 256) -> AsyncStream<TokenEvent> {
        let hub = lobby.withLock { lobby in
            let current = lobby.hub ?? EventHub()
            lobby.hub = current
            return current
        }
        return hub.subscribe(bufferingNewest: limit)
    }
}

/// The isolated versions of the public calls, for callers that are on the actor already: each has taken effect when it returns.
extension TokenService {
    /// The isolated version of ``invalidate(_:)``.
    package func refuse(_ rejected: AccessToken) {
        step { $0.invalidate(rejected, at: $1) }
    }

    /// The isolated version of ``replace(with:)``.
    package func put(_ token: AccessToken) -> Fence {
        noteFence(token)
        guard let lender = ties?.lender else { return fence { $0.replace(with: token, at: $1) } }
        // Replace the grant first: a load that this fence starts must not use the old one.
        let (isSignedOut, lent) = lender.signIn(token)
        return fence(lent) { machine, now in
            let dropped = isSignedOut ? machine.reset(at: now) : nil
            return machine.replace(with: token.with(grantOf: nil), at: now) ?? dropped
        }
    }

    /// The isolated version of ``reset()``.
    package func signOut() -> Fence {
        noteFence(nil)
        return fence(ties?.lender?.signOut()) { $0.reset(at: $1) }
    }

    /// The isolated version of ``retryNow()``.
    package func endPauses() {
        ties?.session?.noteRetry()
        ties?.lender?.retry()
        step { $0.retryNow(at: $1) }
    }

    /// Notes that a grant shared by several keys was replaced through another key.
    package nonisolated func lentGrantReplaced() async {
        await visit { service in service.step { $0.lentGrantReplaced(at: $1) } }
    }

    /// A fence that has taken effect in the service; the store's part may still be under way.
    package struct Fence: Sendable {
        let discarded: AccessToken?
        let end: SingleResult<SessionChange>?
        /// The store's part for a grant that other services use as well.
        let lent: SingleResult<SessionChange>?
        /// The urgency that the store's operation was given.
        let urgency: Urgency
    }

    /// Waits for the store's part; call it once for each fence.
    package nonisolated func end(of fence: Fence) async -> SessionChange {
        var discarded: [AccessToken] = [], storeFailure: TokenServiceError?
        if let token = fence.discarded { discarded.append(token) }
        for end in [fence.end, fence.lent] {
            guard let change = try? await end?.value(known: fence.urgency, onRaise: raiseStore(to:)) else { continue }
            discarded += change.discarded
            storeFailure = storeFailure ?? change.storeFailure
        }
        return SessionChange(discarded: discarded, storeFailure: storeFailure)
    }

    /// Raises the store's operation to the urgency of a caller who waits for it.
    private nonisolated func raiseStore(to urgency: Urgency) {
        ties?.lender?.raise(to: urgency)
        Task.detached(on: executor, priority: urgency.priority) { await self.storing?.raise(to: urgency, on: self.executor) }
    }
}
