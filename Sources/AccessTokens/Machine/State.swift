extension TokenService.StateMachine {
    typealias CachedToken = TokenService.CachedToken

    /// What the store had: a token, and how long ago its load began by the wall clock, which may be wrong.
    typealias Found = (token: AccessToken, age: Duration)

    /// Where the service stands; everything else in the machine only paces it.
    enum State: Sendable {
        /// No token to hand out and no load. A caller starts one (→ `loading`); a token may be given (→ `fresh`).
        case empty
        /// No token to hand out; one load runs and callers wait for it, or have all left. It ends (→ `fresh`, `empty`)
        /// or exceeds its limit (→ `empty` if it may be repeated, else `stalled`).
        case loading(Flight)
        /// A token is handed out; no load. In its soft window a caller starts one (→ `refreshing`); it expires or is
        /// refused (→ `empty`).
        case fresh(CachedToken)
        /// A token is handed out while one load runs ahead of its expiry. The load ends (→ `fresh`); the token expires
        /// or is refused first (→ `loading`: callers join the running load).
        case refreshing(CachedToken, Flight)
        /// A load that must not be repeated has exceeded its limit: none other starts until it ends (→ `fresh`,
        /// `empty`). Callers get the token if it is still good, else the time-out error; none of them waits.
        case stalled(CachedToken?, Flight)
    }
}

extension TokenService.StateMachine.State {
    typealias Flight = TokenService.StateMachine.Flight

    /// The token to hand out.
    var cached: TokenService.CachedToken? {
        switch self {
        case .empty, .loading: nil
        case .fresh(let cached), .refreshing(let cached, _): cached
        case .stalled(let cached, _): cached
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

    private init(_ cached: TokenService.CachedToken?, _ flight: Flight?, isStalled: Bool) {
        self =
            switch (cached, flight) {
            case (nil, nil): .empty
            case (let cached?, nil): .fresh(cached)
            case (let cached, let flight?) where isStalled: .stalled(cached, flight)
            case (nil, let flight?): .loading(flight)
            case (let cached?, let flight?): .refreshing(cached, flight)
            }
    }

    /// Hands this token out from now on; a flight goes on.
    mutating func install(_ cached: TokenService.CachedToken) {
        self = Self(cached, flight, isStalled: isStalled)
    }

    /// Hands no token out; a flight goes on, and callers join it.
    mutating func dropToken() {
        self = Self(nil, flight, isStalled: isStalled)
    }

    /// So many callers have come to wait for the flight.
    mutating func addCallers(_ callers: Int) {
        guard callers > 0, case .loading(var flight) = self else { return }
        flight.callers += callers
        self = .loading(flight)
    }

    /// The flight is over; a token stays.
    mutating func endFlight() {
        self = Self(cached, nil, isStalled: false)
    }
}
