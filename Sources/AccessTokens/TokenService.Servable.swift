extension TokenService {
    /// A token that may be handed out, with its deadlines on the service's clock.
    struct Servable: Sendable {
        let token: AccessToken
        /// From here on it is not handed out; `nil`: until it is invalidated.
        let expiry: Duration?
        /// Where its soft window begins; `nil`: it has none.
        let refreshStart: Duration?
        /// From when on a caller starts a refresh: the soft window, later after a failure, `nil` for none.
        var refreshFrom: Duration?
        var failedRefreshes = 0

        /// A token that arrives now, and whose lifetime counts from `start`.
        init(_ token: AccessToken, from start: Duration, at now: Duration, policy: RefreshPolicy, jitter: Double) {
            self.token = token
            expiry = token.lifetime.map { start + policy.hardExpiry(forLifetime: $0) }
            let wish = token.lifetime.flatMap {
                policy.refreshStart(forLifetime: $0, refreshIn: token.refreshIn, jitter: jitter).map { start + $0 }
            }
            // Slow loads and hasty servers must not make a loop: every token rests a quarter of what is left, or 30 s.
            let rest = expiry.map { min(max($0 - now, .zero) / 4, RefreshPolicy.shortestRefreshPause) } ?? .zero
            refreshStart = wish.map { max($0, now + rest) }
            refreshFrom = refreshStart
        }
    }

    /// What callers see without coming in: the token to hand out or the load to join, and the fence they stand behind.
    struct Snapshot: Sendable {
        var servable: Servable? {
            didSet { calmUntil = Self.calmTime(of: servable) }
        }
        let generation: Int
        /// The number of the token that is handed out, which no other has; `nil` if there is none.
        let publication: Int?
        /// Until when callers may join the load that runs; `nil` for none.
        let joinableUntil: Duration?
        /// When time alone next changes something for those who wait; `nil`: it doesn't.
        let nextDeadline: Duration?
        /// Until then the token is handed out and nothing else is to be done: the one comparison of nearly every call.
        private(set) var calmUntil: Duration

        init(
            servable: Servable?, generation: Int, publication: Int? = nil, joinableUntil: Duration? = nil,
            nextDeadline: Duration? = nil
        ) {
            self.servable = servable
            self.generation = generation
            self.publication = publication
            self.joinableUntil = joinableUntil
            self.nextDeadline = nextDeadline
            calmUntil = Self.calmTime(of: servable)
        }

        /// The token, if it may be handed out at this time.
        func token(at now: Duration) -> AccessToken? {
            guard let servable, servable.expiry.map({ now < $0 }) ?? true else { return nil }
            return servable.token
        }

        /// Whether a caller should start a refresh now.
        func isRefreshDue(at now: Duration) -> Bool {
            servable?.refreshFrom.map { $0 <= now } ?? false
        }

        private static func calmTime(of servable: Servable?) -> Duration {
            guard let servable else { return .zero }
            let never = Duration(secondsComponent: .max, attosecondsComponent: 0)
            return min(servable.expiry ?? never, servable.refreshFrom ?? never)
        }
    }
}

extension TokenService.StateMachine {
    typealias Servable = TokenService.Servable

    /// The part of the state that callers need; no refresh is due while one runs.
    var snapshot: TokenService.Snapshot {
        var servable = state.servable
        if state.flight != nil { servable?.refreshFrom = nil }
        var limit: Duration?
        if case .loading(let flight) = state { limit = flight.deadline }
        return TokenService.Snapshot(
            servable: servable, generation: generation, publication: servable == nil ? nil : publications,
            joinableUntil: limit, nextDeadline: nextDeadline)
    }
}

extension TokenService.StateMachine.State {
    typealias Flight = TokenService.StateMachine.Flight

    /// The token to hand out.
    var servable: TokenService.Servable? {
        switch self {
        case .empty, .loading: nil
        case .fresh(let servable), .refreshing(let servable, _): servable
        case .stalled(let servable, _): servable
        }
    }

    /// The current flight, stalled or not.
    var flight: Flight? {
        switch self {
        case .empty, .fresh: nil
        case .loading(let flight), .refreshing(_, let flight), .stalled(_, let flight): flight
        }
    }

    /// The current flight while it is within its limit.
    var runningFlight: Flight? {
        isStalled ? nil : flight
    }

    var isStalled: Bool {
        if case .stalled = self { true } else { false }
    }

    private init(_ servable: TokenService.Servable?, _ flight: Flight?, isStalled: Bool) {
        self =
            switch (servable, flight) {
            case (nil, nil): .empty
            case (let servable?, nil): .fresh(servable)
            case (let servable, let flight?) where isStalled: .stalled(servable, flight)
            case (nil, let flight?): .loading(flight)
            case (let servable?, let flight?): .refreshing(servable, flight)
            }
    }

    /// Hands this token out from now on; a flight goes on.
    mutating func install(_ servable: TokenService.Servable) {
        self = Self(servable, flight, isStalled: isStalled)
    }

    /// Hands no token out; a flight goes on, and callers join it.
    mutating func dropServable() {
        self = Self(nil, flight, isStalled: isStalled)
    }

    /// The flight is over; a token stays.
    mutating func endFlight() {
        self = Self(servable, nil, isStalled: false)
    }
}
