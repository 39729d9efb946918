extension TokenService {
    /// What a service knows and decides, as a pure value: events go in, effects come out, nothing happens in here.
    ///
    /// Every event comes with the time at which it reached the machine; the first to reach it wins. Time itself is never
    /// trusted to a timer: each event first compares the deadlines. The actor performs the effects in their order, after it
    /// has published the new ``snapshot`` for callers that don't come in at all.
    struct StateMachine: Sendable {
        /// Where the service stands; everything else below only paces it.
        enum State: Sendable {
            /// No token to hand out and no load. A caller starts one (→ `loading`); a token may be given (→ `fresh`).
            case empty
            /// No token to hand out; one load runs and callers wait for it, or have all left. It ends (→ `fresh`, `empty`)
            /// or exceeds its limit (→ `empty` if it may be repeated, else `stalled`).
            case loading(Flight)
            /// A token is handed out; no load. In its soft window a caller starts one (→ `refreshing`); it expires or is
            /// refused (→ `empty`).
            case fresh(Servable)
            /// A token is handed out while one load runs ahead of its expiry. The load ends (→ `fresh`); the token expires
            /// or is refused first (→ `loading`: callers join the running load).
            case refreshing(Servable, Flight)
            /// A load that must not be repeated has exceeded its limit: none other starts until it ends (→ `fresh`,
            /// `empty`). Callers get the token if it is still good, else the time-out error; nobody waits.
            case stalled(Servable?, Flight)
        }

        /// One load, from its creation to its end.
        struct Flight: Sendable {
            let id: Int
            /// How many fences there were at its start.
            let generation: Int
            /// Lifetimes count from here.
            var start: Duration
            /// When restore and load together have taken too long.
            let limit: Duration
            /// When what it does now has taken too long.
            var deadline: Duration
            /// ``StateMachine/publications`` at its start, or when its token came.
            var publications: Int
            /// The number of its load, counted from 1; `nil`: it has none yet.
            var load: Int?
            /// The grant that its load uses.
            var previous: AccessToken?
            /// How many callers have joined it.
            var callers = 0
            /// Whether it has spent a refresh token: to try it again spends another.
            var isCostly = false
            /// What it does now.
            var phase = Phase.loading
        }

        /// What a flight does.
        enum Phase: Sendable {
            /// The store is asked for the token of an earlier run; the loader comes after it.
            case restoring
            /// The loader is at work.
            case loading
            /// The token is here and is being saved; callers get it afterwards. It came from the loader, or was given by
            /// ``TokenService/replace(with:)``.
            case saving(AccessToken, isGiven: Bool)
        }

        let policy: RefreshPolicy
        let isRepeatable: Bool
        let hasStore: Bool
        /// The store has not said yet what an earlier run left.
        var isRestorePending: Bool
        var state = State.empty
        /// Whether anybody waits for the flight of `loading`, as the lobby says at each event; nobody does in another state.
        private(set) var isAwaited = false
        /// The last token received, handed to the next load as `previous`; it outlives expiry and invalidation.
        var grant: AccessToken?
        /// Loads given up (fenced or timed out) that have not ended.
        var abandoned: [Flight] = []
        var backOff = BackOff()
        var rejections = Rejections()
        // Three answers to “is this out of date?”. Of an event: its `generation`. Of a caller: whether the generation it saw
        // is from before the last reset. Of a flight: whether something was published or fenced off since it started; then
        // an abandoned one's token, and the current one's failure, mean nothing.

        /// How many fences (resets and replacements) there were.
        var generation = 0
        /// The generation that the last reset began.
        var lastReset = 0
        /// How often a token came, was published or was fenced off.
        var publications = 0
        var flights = 0
        var loads = 0
        /// What the store does and has yet to do.
        var storage = StoreQueue()
        /// What the store may have that this service knows: what it found or wrote there last, and what it failed to write since.
        var stored: [AccessToken] = []
        var random: SplitMix64
        private var effects: [Effect] = []

        init(policy: RefreshPolicy, isRepeatable: Bool, hasStore: Bool = false, seed: UInt64) {
            self.policy = policy
            self.isRepeatable = isRepeatable
            self.hasStore = hasStore
            isRestorePending = hasStore
            random = SplitMix64(seed: seed)
        }

        /// What the actor must do, in this order.
        enum Effect: Sendable {
            case start(Flight)
            case cancel(flight: Int)
            /// The store's turn: one operation at a time.
            case perform(StoreQueue.Operation)
            /// The store has done a fence's part, or won't in time; `found` was in the store and unknown.
            case endFences([Int], found: AccessToken?, TokenServiceError?)
            /// Give a grant to the program, to be revoked.
            case discard(DiscardedGrant)
            /// Answer all who wait.
            case answer(Result<AccessToken, TokenServiceError>)
            case announce(TokenEvent)
        }

        /// Hands over the effects of the last event.
        mutating func takeEffects() -> [Effect] {
            defer { effects = [] }
            return effects
        }

        mutating func add(_ effect: Effect) {
            effects.append(effect)
        }

        /// - Parameter generation: That of what the event is about; events of what a fence cut off are not sent.
        mutating func announce(
            _ name: TokenEvent.Name, _ flight: Flight? = nil, generation: Int? = nil, error: TokenServiceError? = nil
        ) {
            let event = TokenEvent(
                name: name, generation: generation ?? self.generation, load: flight?.load, callers: flight?.callers ?? 0,
                error: error)
            effects.append(.announce(event))
        }

        mutating func answerWaiters(_ result: Result<AccessToken, TokenServiceError>) {
            guard isAwaited else { return }
            isAwaited = false
            effects.append(.answer(result))
        }

        /// Hands a grant to the program, unless the service goes on with the same refresh token; returns what it handed over.
        @discardableResult
        mutating func discard(_ token: AccessToken, _ reason: DiscardedGrant.Reason) -> AccessToken? {
            if let refreshToken = token.refreshToken, refreshToken == grant?.refreshToken { return nil }
            // Without a refresh token there is nothing to revoke, but that a sign-out may want to revoke the token itself.
            guard token.refreshToken != nil || reason == .signedOut else { return nil }
            effects.append(.discard(DiscardedGrant(token: token, reason: reason)))
            return token
        }

        /// What happened in the lobby since the last event: callers joined the flight of `loading`, some may have left.
        mutating func callersJoined(_ callers: Int, isAwaited: Bool) {
            self.isAwaited = isAwaited
            guard callers > 0, case .loading(var flight) = state else { return }
            flight.callers += callers
            state = .loading(flight)
        }

        mutating func jitter() -> Double {
            Double.random(in: 0..<1, using: &random)
        }
    }
}
