extension TokenService {
    /// Installs a token of the same principal that allows more.
    ///
    /// Gives it up instead if the session has ended, or has got a token meanwhile that allows something else.
    ///
    /// - Parameters:
    ///   - token: The token.
    ///   - generation: The generation in which it was asked for.
    ///   - isWider: Whether it allows all that the service's current token does, or else the last one, whose grant it would
    ///     replace; called on the actor.
    /// - Returns: The generation that began with it; `nil` if it wasn't installed, or the session has ended while it was saved.
    package nonisolated func widen(
        to token: AccessToken, seen generation: Int, isWider: @Sendable (AccessToken?) -> Bool
    ) async -> Int? {
        let installed = await visit { service -> (fence: Fence, generation: Int)? in
            let machine = service.machine
            guard machine.lastReset <= generation, isWider(machine.state.token ?? machine.grant.token) else {
                service.handOver([DiscardedGrant(token: token, reason: machine.lastReset <= generation ? .replaced : .signedOut)])
                return nil
            }
            let fence = service.put(token)
            return (fence, service.machine.generation)
        }
        guard let (fence, begun) = installed else { return nil }
        _ = await end(of: fence)
        // A sign-out may have come while the token was saved.
        return await isSignedIn(since: generation) ? begun : nil
    }
}
