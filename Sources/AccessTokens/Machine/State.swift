extension TokenService.StateMachine {
    typealias CachedToken = TokenService.CachedToken

    /// The token that the service hands out and the load that runs; the machine's other members decide when and how these change.
    indirect enum State: Sendable {
        /// No token to hand out and no load. A caller starts one (→ `loading`); a token may be given (→ `fresh`).
        case empty
        /// No token to hand out; one load runs and callers wait for it, or have all left. It ends (→ `fresh`, `empty`)
        /// or exceeds its limit (→ `empty` if it may be repeated, else `stalled`).
        case loading(Flight)
        /// A token is handed out; no load. In its soft window a caller starts one (→ `refreshing`); it expires or is
        /// refused (→ `empty`).
        case fresh(CachedToken)
        /// A token is handed out while one load runs ahead of its expiry, or the service checks the shared store. That ends (→
        /// `fresh`); the token expires or is refused first (→ `loading`: callers join the running load).
        case refreshing(CachedToken, Flight)
        /// A load that must not be repeated has exceeded its limit: no other starts until it ends (→ `fresh`, `empty`). Callers
        /// get the token if it is still good, else the time-out error; none of them waits.
        case stalled(CachedToken?, Flight)
    }
}

extension TokenService.StateMachine.State {
    typealias CachedToken = TokenService.CachedToken
    typealias Flight = TokenService.StateMachine.Flight

    /// The token that is handed out.
    var cached: CachedToken? { ofToken { $0 } }
    var token: AccessToken? { ofToken { $0.token } }
    /// When the token is no longer handed out; `nil`: there is no token, or it doesn't expire.
    var expiry: Duration? { ofToken { $0.expiry } ?? nil }
    /// Whether a refresh has failed since the token arrived.
    fileprivate var isRefreshFailing: Bool { ofToken { $0.failedRefreshes > 0 } ?? false }

    /// The current flight, stalled or not.
    var flight: Flight? { ofFlight { $0 } }
    var flightID: Int? { ofFlight { $0.id } }
    /// Whether the flight's token is being saved.
    var isSaving: Bool { ofFlight { $0.isSaving } ?? false }
    /// When the running load has taken too long.
    var loadDeadline: Duration? { isStalled ? nil : ofFlight { $0.isLoading ? $0.deadline : nil } ?? nil }
    /// Until when callers may join the flight.
    var joinableUntil: Duration? { if case .loading(let flight) = self { flight.deadline } else { nil } }

    var isStalled: Bool { if case .stalled = self { true } else { false } }

    /// A part of the token that is handed out.
    ///
    /// One case per pattern: one pattern for several would copy the whole payload to read one part of it.
    @inline(__always) private func ofToken<Part>(_ part: (CachedToken) -> Part) -> Part? {
        switch self {
        case .empty, .loading: nil
        case .fresh(let cached): part(cached)
        case .refreshing(let cached, _): part(cached)
        case .stalled(let cached, _): cached.map(part)
        }
    }

    /// A part of the current flight, likewise.
    @inline(__always) private func ofFlight<Part>(_ part: (Flight) -> Part) -> Part? {
        switch self {
        case .empty, .fresh: nil
        case .loading(let flight): part(flight)
        case .refreshing(_, let flight): part(flight)
        case .stalled(_, let flight): part(flight)
        }
    }

    /// Hands out this token from now on; a running flight continues.
    mutating func install(_ cached: consuming CachedToken) {
        switch self {
        case .empty, .fresh: self = .fresh(cached)
        case .loading(let flight), .refreshing(_, let flight): self = .refreshing(cached, flight)
        case .stalled(_, let flight): self = .stalled(cached, flight)
        }
    }

    /// Hands out no token from now on; a running flight continues, and callers join it.
    mutating func dropToken() {
        switch self {
        case .empty, .loading: break
        case .fresh: self = .empty
        case .refreshing(_, let flight): self = .loading(flight)
        case .stalled(_, let flight): self = .stalled(nil, flight)
        }
    }

    /// Begins a flight, or its next phase, beside the token, if there is one.
    @inline(__always) mutating func begin(_ flight: consuming Flight) {
        self = if let cached { .refreshing(cached, flight) } else { .loading(flight) }
    }

    /// Adds to the number of callers that wait for the flight.
    mutating func addCallers(_ callers: Int) {
        if callers > 0 { changeFlight { $0.callers += callers } }
    }

    /// The grant that the flight's load uses has been replaced through another key.
    mutating func noteReplacedGrant() { changeFlight { $0.hasOldGrant = true } }

    /// Changes the flight, unless it has stalled.
    @inline(__always) private mutating func changeFlight(_ change: (inout Flight) -> Void) {
        switch self {
        case .loading(var flight):
            change(&flight)
            self = .loading(flight)
        case .refreshing(let cached, var flight):
            change(&flight)
            self = .refreshing(cached, flight)
        case .empty, .fresh, .stalled: break
        }
    }

    /// Ends the flight; the token, if any, stays.
    mutating func endFlight() {
        self = if let cached { .fresh(cached) } else { .empty }
    }
}

// MARK: The flight

extension TokenService.StateMachine {
    /// The work that callers join: the store's restore, the load and the save of its token, as far as they are needed.
    struct Flight: Sendable {
        let id: Int
        /// The number of the last fence at its start.
        let generation: Int
        /// The time from which lifetimes count.
        var start: Duration
        /// When restore and load together have taken too long.
        let limit: Duration
        /// When its current phase has taken too long.
        var deadline: Duration
        /// ``StateMachine/publications`` at its start, or when its token arrived.
        var publications: Int
        /// The number of its load, counted from 1; `nil`: it has none yet.
        var load: Int?
        /// The grant that its load uses.
        var previous: AccessToken?
        /// How many callers have joined it.
        var callers = 0
        /// Whether another load may start although it continues, because it has taken too long.
        var isGivenUp = false
        /// Whether it has spent a refresh token, so that another attempt spends another.
        var isCostly = false
        /// Whether other keys use its grant as well and have replaced it since; then another load may start once this one's limit
        /// has passed.
        var hasOldGrant = false
        /// Its current phase.
        var phase = Phase.loading
    }

    /// The data with which a flight starts.
    struct FlightStart: Sendable {
        let id: Int
        /// The grant that its load uses.
        let previous: AccessToken?
        let deadline: Duration

        init(_ flight: borrowing Flight) {
            id = flight.id
            previous = flight.previous
            deadline = flight.deadline
        }
    }

    /// A load that a fence cut off: it continues, and the token that it brings is passed to the program.
    struct FencedLoad: Sendable {
        let id: Int
        /// The number of the last fence at its start.
        let generation: Int
        /// When nothing waits for its end any longer, so that it is cancelled.
        let forgottenFrom: Duration
        var isCancelled = false

        init(_ flight: borrowing Flight, forgottenFrom: Duration) {
            id = flight.id
            generation = flight.generation
            self.forgottenFrom = forgottenFrom
        }
    }

    /// The phases of a flight.
    enum Phase: Sendable {
        /// The store is asked for a token of an earlier run or of another service; the loader follows if it is needed.
        case checking
        /// The loader is at work.
        case loading
        /// The token is here and is being saved; callers get it afterwards.
        case saving(AccessToken, Origin)
    }

    /// What a caller asks of a token, besides that it is valid.
    enum Demand: Sendable {
        /// That it is good for this long, if the server issues such tokens.
        case validFor(Duration)
        /// That its load began after this flight.
        case loadedAfter(Int)
    }

    /// The source of a token.
    enum Origin: Sendable {
        case loader
        /// Given by ``TokenService/replace(with:)``.
        case program
        /// Adopted from a record that services share.
        case otherService
    }

    /// A token from the store, and how long ago its load began according to the wall clock, which may be wrong.
    typealias Found = (token: AccessToken, age: Duration)
}

extension TokenService.StateMachine.Flight {
    var isLoading: Bool { if case .loading = phase { true } else { false } }

    /// Whether it has only asked a store so far, and no server yet.
    var isCheck: Bool { if case .checking = phase { true } else { false } }

    /// Holds a token that is about to be saved.
    ///
    /// From now on an older load's result counts as outdated.
    mutating func hold(_ token: AccessToken, from origin: TokenService.StateMachine.Origin, publication: Int, at now: Duration) {
        publications = publication
        phase = .saving(token, origin)
        // The load has ended in time; the save has its own limit.
        deadline = now + RefreshPolicy.storeTimeout
    }

    fileprivate var isSaving: Bool { if case .saving = phase { true } else { false } }

    /// The token that is being saved.
    var savedToken: AccessToken? { if case .saving(let token, _) = phase { token } else { nil } }
}

// MARK: When work ends

extension TokenService.StateMachine {
    /// Returns when a load that was given up no longer blocks others, even if it hasn't ended.
    func endOfPatience(with flight: borrowing Flight) -> Duration { flight.limit + keeper.patience }

    /// When the stalled load no longer blocks others; `nil` if none has stalled, or if its grant is shared.
    var stalledUntil: Duration? {
        guard state.isStalled, !keeper.isShared, let flight = state.flight else { return nil }
        return endOfPatience(with: flight)
    }

    /// Whether so many given-up loads still run that no other may start.
    func isCrowded(at now: Duration) -> Bool {
        guard abandoned.count > RefreshPolicy.abandonedFlights else { return false }
        return abandoned.count { now < endOfPatience(with: $0) } > RefreshPolicy.abandonedFlights
    }

    /// When all given-up loads should have ended at the latest; `nil`: there are none.
    private var givenUpUntil: Duration? {
        var until = fenced.last?.forgottenFrom
        for flight in abandoned { until = max(until ?? .zero, endOfPatience(with: flight)) }
        return until
    }

    /// When the running load or store operation should have ended at the latest, even if nothing waits for it; `nil`: none runs.
    var isAtWorkUntil: Duration? {
        let ofFlight = state.flight.map { endOfPatience(with: $0) }, ofStore = keeper.isAtWorkUntil
        if keeper.isShared, ofFlight != nil || ofStore != nil { return .forever }
        return [ofFlight, ofStore, givenUpUntil].compactMap(\.self).max()
    }

    /// Whether any work is expected to end.
    func isAtWork(at now: Duration) -> Bool {
        isAtWorkUntil.map { now < $0 } ?? false
    }

    /// When the service can be released, and created again for its next caller, without a loss; `nil`: not before another event.
    ///
    /// Letting it go now would lose waiting callers, a grant that no store has, a sign-out that the store doesn't have yet, or
    /// the reason why a token or a load was refused, so that a new service would ask the server at once. A given-up load that no
    /// longer blocks others doesn't count: its task keeps the service alive anyway.
    var idleFrom: Duration? {
        guard state.flight == nil || stalledUntil != nil, let storeEnd = keeper.idleFrom,
            let backOffEnd = backOff.idleFrom, let rejectionsEnd = rejections.idleFrom
        else { return nil }
        guard let pauseEnd = state.isRefreshFailing ? state.expiry : .zero else { return nil }
        let loadEnd = max(stalledUntil ?? .zero, givenUpUntil ?? .zero)
        // In pairs: `max` with more arguments allocates an array.
        return max(max(pauseEnd, loadEnd), max(storeEnd, max(backOffEnd, rejectionsEnd)))
    }
}
