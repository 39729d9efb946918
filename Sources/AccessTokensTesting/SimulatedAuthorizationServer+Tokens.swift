public import AccessTokens
import TokenServiceConcurrency

/// Beginning sessions, checking tokens, and counting them.
extension SimulatedAuthorizationServer {
    /// Begins a session, as a user's sign-in does, and returns its first token, with a refresh token.
    ///
    /// Needs no load and no time, and revokes nothing: other sessions continue.
    public func signIn() -> AccessToken {
        let now = uptime()
        return state.withLock { $0.ledger.signIn(at: now) }
    }

    /// Whether the resource server accepts a token: issued, not revoked, not expired by the server's clock.
    public func accepts(_ token: AccessToken) -> Bool {
        let now = uptime()
        return state.withLock { $0.ledger.isValid(token.value, at: now) }
    }

    /// Revokes one access token, so that the resource server refuses it; its refresh token stays good.
    public func revoke(_ token: AccessToken) {
        state.withLock { $0.ledger.revoke(token.value) }
    }

    /// Revokes all access tokens and ends all sessions: refreshes fail with `ScriptedFailure(.signIn)`.
    ///
    /// Client-credentials loads still succeed, and so does a new ``signIn()``.
    public func revokeAll() {
        state.withLock { $0.ledger.revokeAll() }
    }

    /// The number of loads that have begun, whatever their outcome.
    public var loadsStarted: Int { state.withLock { $0.loadsStarted } }

    /// The number of access tokens issued, including those of ``signIn()`` and those whose answer was lost.
    package var tokensIssued: Int { state.withLock { $0.ledger.tokensIssued } }

    /// The number of access tokens issued for a refresh token.
    public var refreshes: Int { state.withLock { $0.ledger.refreshes } }

    /// The number of tokens revoked by a later one of the same session before they expired.
    ///
    /// If it is higher than the number of refreshes ahead of time, a client has loaded twice.
    public var tokensRevokedWhileValid: Int { state.withLock { $0.ledger.tokensRevokedWhileValid } }

    /// The number of sessions that ended because a used refresh token was presented again.
    public var reuseDetected: Int { state.withLock { $0.ledger.reuseDetected } }
}
