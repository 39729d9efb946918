import TokenServiceConcurrency

/// Troubles that the test can cause while the server runs; each takes effect with the next load that begins.
extension SimulatedAuthorizationServer {
    /// How long an answer takes, including a failure; loads under way keep theirs.
    package var latency: Duration {
        get { state.withLock { $0.latency } }
        set { state.withLock { $0.latency = newValue } }
    }

    /// Whether requests arrive; if not, loads fail with a transient error and never reach the server.
    public var isReachable: Bool {
        get { state.withLock { $0.isReachable } }
        set { state.withLock { $0.isReachable = newValue } }
    }

    /// Whether a session gets its latest token again instead of a new one, even if that was revoked.
    ///
    /// A server behind a cache does that, too. A session that has no token yet gets its first.
    package var answersRepeatedToken: Bool {
        get { state.withLock { $0.ledger.answersRepeatedToken } }
        set { state.withLock { $0.ledger.answersRepeatedToken = newValue } }
    }

    /// Makes the next loads fail without an exchange, after those already planned to fail or to lose their answer.
    public func failNext(_ count: Int = 1, with error: any Error = ScriptedFailure()) {
        state.withLock { $0.troubles.append(Trouble(kind: .failure(error), remaining: count)) }
    }

    /// Makes the next loads never end, after those already planned to fail or to lose their answer.
    ///
    /// The exchange takes place, and only its answer is lost: a refresh token is used up, and the client can't know. An async
    /// load ends with `CancellationError` when its task is cancelled; a handler is kept, uncalled, as long as the server.
    public func loseNextResponses(_ count: Int = 1) {
        state.withLock { $0.troubles.append(Trouble(kind: .lostAnswer, remaining: count)) }
    }

    /// A trouble, and how many loads it affects.
    struct Trouble: Sendable {
        enum Kind: Sendable {
            case failure(any Error)
            case lostAnswer
        }

        let kind: Kind
        var remaining: Int
    }
}

extension SimulatedAuthorizationServer.State {
    /// Takes the trouble of the load that begins now.
    mutating func nextTrouble() -> SimulatedAuthorizationServer.Trouble.Kind? {
        troubles.removeAll { $0.remaining <= 0 }
        guard !troubles.isEmpty else { return nil }
        troubles[0].remaining -= 1
        return troubles[0].kind
    }
}
