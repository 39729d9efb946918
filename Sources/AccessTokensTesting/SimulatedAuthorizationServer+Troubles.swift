import TokenServiceConcurrency

/// What the test can do to the server while it runs; each takes effect with the next load to begin.
extension SimulatedAuthorizationServer {
    /// How long an answer takes, also a failure; loads under way keep theirs.
    public var latency: Duration {
        get { state.withLock { $0.latency } }
        set { state.withLock { $0.latency = newValue } }
    }

    /// Whether requests arrive; if not, loads fail with a transient error and the server knows nothing of them.
    public var isReachable: Bool {
        get { state.withLock { $0.isReachable } }
        set { state.withLock { $0.isReachable = newValue } }
    }

    /// Whether a session gets its latest token again instead of a new one, even if that was revoked.
    ///
    /// So does a server behind a cache. A session that has none yet gets its first.
    public var answersRepeatedToken: Bool {
        get { state.withLock { $0.ledger.answersRepeatedToken } }
        set { state.withLock { $0.ledger.answersRepeatedToken = newValue } }
    }

    /// Makes the next loads fail without an exchange, after those already planned to fail or to lose their answer.
    public func failNext(_ count: Int = 1, with error: any Error = ScriptedFailure.transient) {
        state.withLock { $0.troubles.append(Trouble(kind: .failure(error), remaining: count)) }
    }

    /// Makes the next loads never end, after those already planned to fail or to lose their answer.
    ///
    /// The exchange takes place, only its answer is lost: a refresh token is used up, and the client cannot know. An async
    /// load ends with `CancellationError` when its task is cancelled; a handler is kept, uncalled, as long as the server.
    public func loseNextAnswers(_ count: Int = 1) {
        state.withLock { $0.troubles.append(Trouble(kind: .lostAnswer, remaining: count)) }
    }

    /// What goes wrong, and with how many loads.
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
    /// Takes what goes wrong with the load that begins now.
    mutating func nextTrouble() -> SimulatedAuthorizationServer.Trouble.Kind? {
        while let trouble = troubles.first {
            guard trouble.remaining > 0 else {
                troubles.removeFirst()
                continue
            }
            troubles[0].remaining -= 1
            return trouble.kind
        }
        return nil
    }
}
