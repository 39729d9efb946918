extension TokenService {
    /// Drops a token that a resource server refused, if it is still the current one.
    ///
    /// Call it with the token that the refused request carried. An older one is only remembered, so that a late refusal
    /// never throws a fresh token away; a refused token (the last 8, until they expire) is never handed out again. The
    /// next caller loads, or joins the refresh that already runs; refusals cause at most 5 loads in 30 s, then callers
    /// get ``TokenServiceError/Code/tooManyInvalidations``. The refresh token is kept. Concurrent calls with one token do
    /// what one call does.
    ///
    /// Source: RFC 6750 §3.1 (`invalid_token`).
    public nonisolated func invalidate(_ rejected: AccessToken) async {
        await visit { $0.refuse(rejected) }
    }

    /// The invalidation itself, which has taken effect when this returns.
    package func refuse(_ rejected: AccessToken) {
        step { $0.invalidate(rejected, at: $1) }
    }

    /// Puts a new token for the same principal in place: signed in, or consent extended.
    ///
    /// Everything that began before is fenced off; callers who wait get the new token. Its lifetime counts from now. An
    /// expired one (a lifetime of zero) is a grant only: a load starts at once with it, and those who wait go on waiting.
    /// Clears back-off and refusals. For a change of user call ``reset()`` first.
    ///
    /// The replacement takes effect at once. With a store the token is saved before any caller gets it, and this returns when
    /// it has been, or after 5 s; then callers get it all the same.
    ///
    /// - Parameter token: The new token.
    /// - Returns: What was given up, and whether the store has the new token.
    @discardableResult
    public nonisolated func replace(with token: AccessToken) async -> SessionChange {
        await end(of: visit { $0.place(token) })
    }

    /// The replacement itself, which has taken effect when this returns.
    package func place(_ token: AccessToken) -> Fence {
        fence { $0.replace(with: token, at: $1) }
    }

    /// Signs out: drops token and grant, and fences off everything that began before.
    ///
    /// Calls that start after it took effect see no token, error or event from before. Callers who wait get
    /// ``TokenServiceError/Code/reset`` at once; loads are cancelled and their results discarded. Afterwards the service is
    /// empty, not locked: the next call loads with no previous token.
    ///
    /// The fence takes effect at once, whatever becomes of the store; what is waited for is that the store hands over and
    /// removes what it has, 5 s at most.
    ///
    /// - Returns: What was given up, whose refresh tokens you may want to revoke (RFC 7009), and whether the store has
    ///   removed its token.
    public nonisolated func reset() async -> SessionChange {
        await end(of: visit { $0.fence() })
    }

    /// A fence that has taken effect, but for the store's part.
    package struct Fence: Sendable {
        let discarded: AccessToken?
        let end: FirstAnswer<SessionChange>?
    }

    /// The reset itself, which has taken effect when this returns.
    package func fence() -> Fence {
        fence { $0.reset(at: $1) }
    }

    private func fence(_ event: (inout Machine, Duration) -> AccessToken?) -> Fence {
        let number = machine.generation + 1, end = FirstAnswer<SessionChange>()
        if store != nil { fences[number] = end }
        return Fence(discarded: step(event), end: store == nil ? nil : end)
    }

    /// The store has done its part of these fences, or failed to in time.
    func end(_ numbers: [Int], found: AccessToken?, error: TokenServiceError?) {
        for number in numbers {
            let change = SessionChange(discarded: [found].compactMap { $0 }, storeFailure: error)
            fences.removeValue(forKey: number)?.give(.success(change))
        }
    }

    /// Waits for the store's part; to be called once for each fence.
    package nonisolated func end(of fence: Fence) async -> SessionChange {
        let discarded = [fence.discarded].compactMap { $0 }
        guard let change = try? await fence.end?.value() else {
            return SessionChange(discarded: discarded, storeFailure: nil)
        }
        return SessionChange(discarded: discarded + change.discarded, storeFailure: change.storeFailure)
    }

    /// Ends every pause after failures, also a refused grant's: the person tapped “try again”.
    ///
    /// Starts nothing itself; the next caller does. The limit on loads caused by refusals stays.
    public nonisolated func retryNow() async {
        await visit { $0.endPauses() }
    }

    package func endPauses() {
        step { $0.retryNow(at: $1) }
    }

    /// A stream of what happens from now on, for logs and metrics.
    ///
    /// Every call makes a stream of its own with a bounded buffer: a slow reader loses the oldest events and delays nobody.
    /// Streams end when the service is released.
    ///
    /// - Parameter limit: How many events are kept for a slow reader, at least 1.
    public nonisolated func events(bufferingNewest limit: Int = 256) -> AsyncStream<TokenEvent> {
        hub.subscribe(bufferingNewest: limit)
    }
}
