extension TokenService {
    /// Installs a token of the same principal that allows more, unless the session has ended or has come to a token that allows
    /// something else meanwhile; then it is given up.
    ///
    /// - Parameters:
    ///   - token: The token.
    ///   - generation: The generation in which it was asked for.
    ///   - isWider: Whether it allows all that the service's current token does, or the last one, whose grant it would replace; called on
    ///     the actor.
    /// - Returns: Whether it was installed.
    package nonisolated func widen(
        to token: AccessToken, seen generation: Int, isWider: @Sendable (AccessToken?) -> Bool
    ) async -> Bool {
        let fence = await visit { service -> Fence? in
            let machine = service.machine
            guard machine.lastReset <= generation, isWider(machine.state.token ?? machine.grant.token) else {
                service.handOver([DiscardedGrant(token: token, reason: machine.lastReset <= generation ? .replaced : .signedOut)])
                return nil
            }
            return service.put(token)
        }
        guard let fence else { return false }
        _ = await end(of: fence)
        return true
    }
}
