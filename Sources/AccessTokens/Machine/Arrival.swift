extension TokenService {
    /// A token that has arrived, and all that decides what it is good for.
    struct Arrival: Sendable {
        /// What it is good for.
        enum Verdict {
            /// To be handed out from now on.
            case keep(CachedToken)
            /// Only to answer those who wait: it lasts no longer than its leeway.
            case answerOnly
            /// For nothing.
            case fail(TokenServiceError)
        }

        let token: AccessToken
        /// When its load began.
        let start: Duration
        let now: Duration
        let policy: RefreshPolicy
        let rejections: Rejections
        /// Whether another token is handed out already.
        let isRefresh: Bool

        init(_ token: AccessToken, by flight: StateMachine.Flight, at now: Duration, in machine: StateMachine) {
            self.token = token
            self.now = now
            start = flight.start
            policy = machine.policy
            rejections = machine.rejections
            isRefresh = machine.state.cached != nil
        }

        func verdict(random: inout SplitMix64) -> Verdict {
            if let flaw { return .fail(flaw) }
            let cached = CachedToken(token, from: start, at: now, policy: policy, jitter: random.jitter())
            if cached.isValid(at: now) { return .keep(cached) }
            // It is no caller's answer, and a good token is there: that is a refresh that gained nothing.
            return isRefresh ? .fail(TokenServiceError(.tokenExpiredOnArrival)) : .answerOnly
        }

        /// Whether it will be handed out, be it only to those who wait.
        var isServable: Bool {
            guard flaw == nil else { return false }
            let expiry = token.lifetime.map { start + policy.hardExpiry(forLifetime: $0) }
            return !isRefresh || expiry.map { now < $0 } ?? true
        }

        private var flaw: TokenServiceError? {
            if rejections.contains(token, at: now) { return TokenServiceError(.tokenRejectedBefore) }
            if let lifetime = token.lifetime, start + min(lifetime, RefreshPolicy.longestLifetime) <= now {
                return TokenServiceError(.tokenExpiredOnArrival)
            }
            return token.isUnusable ? TokenServiceError(.loadFailed, underlying: EmptyAccessToken()) : nil
        }
    }
}
