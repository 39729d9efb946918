package import TokenServiceConcurrency

extension TokenService {
    /// Drops a token that a resource server refused, if it is still the current one.
    ///
    /// Call it with the token that the refused request carried, if you don't send the request again. If you do, call
    /// ``retrieveToken(insteadOf:within:)`` instead, which also keeps the request's user. A token that is no longer current is
    /// only remembered, so that a late refusal never drops a fresh token; a refused token (the last 8, until they expire) is
    /// never handed out again. The next caller loads, or joins the refresh that already runs. Refusals cause at most 5 loads in
    /// 30 s. Until another may start, the newest token stays in use, even if it was refused. The refresh token is kept.
    /// Concurrent calls with one token have the effect of one call.
    ///
    /// Source: RFC 6750 §3.1 (`invalid_token`).
    public nonisolated func invalidate(_ rejected: AccessToken) async {
        refuse(rejected)
        await visit { $0.settle() }
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
        await finish(put(token))
    }

    /// Signs out: drops token and grant, and fences off everything that began before.
    ///
    /// Calls that start after it took effect see no token, error or event from before. Waiting callers get
    /// ``TokenServiceError/Code/reset`` at once, and the results of loads are discarded. A load that may bring a grant (one that
    /// must not be repeated, or that presents a refresh token) isn't cancelled: its response is read, and what it brings goes to
    /// `onDiscard`, so that it can be revoked; ``drain(within:)`` waits for it. Afterwards the service is empty, not locked: the
    /// next call loads with no previous token.
    ///
    /// The fence takes effect at once, whatever happens to the store. The call only waits, 5 s at most, for the store to return
    /// and remove its token.
    ///
    /// - Returns: The tokens given up, whose refresh tokens you may want to revoke (RFC 7009), and whether the store has
    ///   removed its token.
    public nonisolated func reset() async -> SessionChange {
        await finish(signOut())
    }

    /// Ends every pause after failures, even after a refused grant: the user tapped “try again”.
    ///
    /// Starts no load: the next caller does. A save or removal that failed is repeated at once. The limit on loads caused by refusals
    /// stays.
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
        let (hub, generation) = lobby.withLock { lobby in
            let current = lobby.hub ?? EventHub()
            lobby.hub = current
            return (current, lobby.snapshot.hit.generation)
        }
        // The actor may still be announcing what was before a sign-out.
        return hub.subscribe(bufferingNewest: limit) { $0.generation >= generation }
    }
}

/// The synchronous parts of the public calls: what they end has ended for every caller when they return, whatever the actor is
/// doing.
extension TokenService {
    /// The synchronous part of ``invalidate(_:)``; ``settle()`` must follow.
    ///
    /// - Parameter isToResend: Whether the request is to be sent again, if its session hasn't ended.
    package nonisolated func refuse(_ rejected: AccessToken, isToResend: Bool = false) {
        let now = clock.now()
        _ = lobby.withLock { $0.note(.refusal(rejected, isToResend: isToResend), for: nil, at: now) }
    }

    /// The synchronous part of ``replace(with:)``.
    package nonisolated func put(_ token: AccessToken) -> Fence { fence(.signIn(token)) ?? .none }

    /// The synchronous part of ``reset()``.
    package nonisolated func signOut() -> Fence { fence(.signOut) ?? .none }

    /// A sign-in or a sign-out, of all keys that share the grant.
    ///
    /// - Parameters:
    ///   - generation: The generation in which it is meant; returns `nil` in any other.
    ///   - unlessFenced: Whether it isn't meant if another key has signed in or out before.
    nonisolated func fence(_ act: Notice.Act, in generation: Int? = nil, unlessFenced: Bool = false) -> Fence? {
        guard let lender = ties?.lender else { return note(act, at: clock.now(), as: fenceUrgency, in: generation) }
        let now = clock.now(), urgency = Urgency.current
        let own = act.token.map { .signIn($0.with(grantOf: nil)) } ?? act
        return lender.fence(act.token, unlessFenced: unlessFenced) { note(own, at: now, as: urgency, in: generation) }
    }

    /// Nothing waits for the store if there is none.
    private nonisolated var fenceUrgency: Urgency { ties?.place.hasStore ?? false ? .current : .background }

    /// Drops everything that came from a lent grant, as a sign-out does, but keeps the grant, which may be a new user's.
    ///
    /// Calls no foreign code, so it may be called under a lock.
    ///
    /// - Parameter generation: The generation in which it is meant; returns `nil` in any other.
    package nonisolated func drop(at now: Duration, as urgency: Urgency, in generation: Int? = nil) -> Fence? {
        note(.signOut, at: now, as: urgency, in: generation)
    }

    private nonisolated func note(
        _ act: Notice.Act, at now: Duration, as urgency: Urgency, in generation: Int?
    ) -> Fence? {
        let fence = Fence(urgency: urgency)
        return lobby.withLock { $0.note(act, for: fence, at: now, in: generation) } ? fence : nil
    }

    /// Ends every pause; the isolated version of ``retryNow()``.
    package func endPauses() {
        // A sign-out before this call also ends an earlier request to retry.
        step { $0.retryNow(at: $1) }
        ties?.session?.noteRetry()
        ties?.lender?.retry()
    }

    /// Notes that a grant shared by several keys was replaced through another key.
    package nonisolated func lentGrantReplaced() async {
        await visit { service in service.step { $0.lentGrantReplaced(at: $1) } }
    }

    /// A sign-in or a sign-out that has taken effect for every caller; pass it to ``finish(_:)``, or call ``settle()`` and pass
    /// it to ``end(of:)``, once.
    package struct Fence: Sendable {
        /// Completes when the machine has learnt of it and the store has done its part.
        let end = SingleResult<SessionChange>()
        /// The store's part for a grant that other services use as well.
        package var lent: SingleResult<SessionChange>?
        /// The urgency that the store's operation gets.
        let urgency: Urgency

        /// A fence that ends nothing.
        static var none: Fence {
            let fence = Fence(urgency: .background)
            fence.end.complete(with: .success(SessionChange(discarded: [], storeFailure: nil)))
            return fence
        }
    }

    /// Takes a fence to the machine, and waits for the store's part.
    package nonisolated func finish(_ fence: Fence) async -> SessionChange {
        await visit { $0.settle() }
        return await end(of: fence)
    }

    /// Waits for the store's part of a fence that the machine has learnt of, or is about to.
    package nonisolated func end(of fence: Fence) async -> SessionChange {
        var discarded: [AccessToken] = [], storeFailure: TokenServiceError?
        for end in [fence.end, fence.lent] {
            guard let change = try? await end?.value(known: fence.urgency, onRaise: raiseStore(to:)) else { continue }
            discarded += change.discarded
            storeFailure = storeFailure ?? change.storeFailure
        }
        return SessionChange(discarded: discarded, storeFailure: storeFailure)
    }

    /// Raises the store's operation to the urgency of a caller who waits for it.
    private nonisolated func raiseStore(to urgency: Urgency) {
        guard let ties else { return }
        ties.lender?.raise(to: urgency)
        // Without a store nothing waits.
        guard ties.place.hasStore else { return }
        Task.detached(on: executor, priority: urgency.priority) { await self.storing?.raise(to: urgency, on: self.executor) }
    }
}
