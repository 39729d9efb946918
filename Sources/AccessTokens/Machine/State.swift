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
    typealias Flight = TokenService.StateMachine.Flight

    /// The token that is handed out.
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

    /// The current flight's number, without a copy of it.
    var flightID: Int? {
        switch self {
        case .empty, .fresh: nil
        case .loading(let flight): flight.id
        case .refreshing(_, let flight): flight.id
        case .stalled(_, let flight): flight.id
        }
    }

    // One case per pattern: one pattern for several would copy the whole payload to read one part of it.

    var token: AccessToken? {
        switch self {
        case .empty, .loading: nil
        case .fresh(let cached): cached.token
        case .refreshing(let cached, _): cached.token
        case .stalled(let cached, _): cached?.token
        }
    }

    /// When the token is no longer handed out; `nil`: there is no token, or it doesn't expire.
    var expiry: Duration? {
        switch self {
        case .empty, .loading: nil
        case .fresh(let cached): cached.expiry
        case .refreshing(let cached, _): cached.expiry
        case .stalled(let cached, _): cached?.expiry
        }
    }

    /// Whether a refresh has failed since the token arrived.
    fileprivate var isRefreshFailing: Bool {
        switch self {
        case .empty, .loading: false
        case .fresh(let cached): cached.failedRefreshes > 0
        case .refreshing(let cached, _): cached.failedRefreshes > 0
        case .stalled(let cached, _): cached.map { $0.failedRefreshes > 0 } ?? false
        }
    }

    /// Until when callers may join the flight.
    var joinableUntil: Duration? {
        if case .loading(let flight) = self { flight.deadline } else { nil }
    }

    /// When the running load has taken too long.
    var loadDeadline: Duration? {
        switch self {
        case .empty, .fresh, .stalled: nil
        case .loading(let flight): flight.loadDeadline
        case .refreshing(_, let flight): flight.loadDeadline
        }
    }

    var isStalled: Bool {
        if case .stalled = self { true } else { false }
    }

    /// Whether the flight's token is being saved.
    var isSaving: Bool {
        switch self {
        case .empty, .fresh: false
        case .loading(let flight): flight.isSaving
        case .refreshing(_, let flight), .stalled(_, let flight): flight.isSaving
        }
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

    /// Hands out this token from now on; a running flight continues.
    mutating func install(_ cached: consuming TokenService.CachedToken) {
        switch self {
        case .empty, .fresh: self = .fresh(cached)
        case .loading(let flight), .refreshing(_, let flight): self = .refreshing(cached, flight)
        case .stalled(_, let flight): self = .stalled(cached, flight)
        }
    }

    /// Hands out no token from now on; a running flight continues, and callers join it.
    mutating func dropToken() {
        self = Self(nil, flight, isStalled: isStalled)
    }

    /// Begins a flight, or its next phase, beside the token, if there is one.
    @inline(__always) mutating func begin(_ flight: consuming Flight) {
        self = if let cached { .refreshing(cached, flight) } else { .loading(flight) }
    }

    /// Adds to the number of callers that wait for the flight.
    mutating func addCallers(_ callers: Int) {
        guard callers > 0 else { return }
        switch self {
        case .loading(var flight):
            flight.callers += callers
            self = .loading(flight)
        case .refreshing(let cached, var flight):
            flight.callers += callers
            self = .refreshing(cached, flight)
        case .empty, .fresh, .stalled: break
        }
    }

    /// The grant that the flight's load uses has been replaced through another key.
    mutating func noteReplacedGrant() {
        switch self {
        case .loading(var flight):
            flight.hasOldGrant = true
            self = .loading(flight)
        case .refreshing(let cached, var flight):
            flight.hasOldGrant = true
            self = .refreshing(cached, flight)
        case .empty, .fresh, .stalled: break
        }
    }

    /// Ends the flight; the token, if any, stays.
    mutating func endFlight() {
        self = Self(cached, nil, isStalled: false)
    }
}

// MARK: The flight

extension TokenService.StateMachine {
    /// The work that callers join: the store's restore, the load and the save of its token, as far as they are needed.
    struct Flight: Sendable {
        let id: Int
        /// How many fences there were at its start.
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
        /// How many fences there were at its start.
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

        var isForLoad: Bool { if case .loadedAfter = self { true } else { false } }
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
    var isLoading: Bool {
        if case .loading = phase { true } else { false }
    }

    /// ``deadline``, if a loader is at work.
    @inline(__always) fileprivate var loadDeadline: Duration? {
        isLoading ? deadline : nil
    }

    /// Whether it has only asked a store so far, and no server yet.
    var isCheck: Bool {
        if case .checking = phase { true } else { false }
    }

    /// Holds a token that is about to be saved.
    ///
    /// From now on an older load's result counts as outdated.
    mutating func hold(_ token: AccessToken, from origin: TokenService.StateMachine.Origin, publication: Int, at now: Duration) {
        publications = publication
        phase = .saving(token, origin)
        // The load has ended in time; the save has its own limit.
        deadline = now + RefreshPolicy.storeTimeout
    }

    fileprivate var isSaving: Bool {
        if case .saving = phase { true } else { false }
    }

    /// The token that is being saved.
    var savedToken: AccessToken? {
        if case .saving(let token, _) = phase { token } else { nil }
    }
}

// MARK: When work ends

extension TokenService.StateMachine {
    /// Returns when a load that was given up no longer blocks others, even if it hasn't ended.
    func end(ofGivenUp flight: borrowing Flight) -> Duration { flight.limit + keeper.patience }

    /// When the stalled load no longer blocks others; `nil` if none has stalled, or if its grant is shared.
    var stalledUntil: Duration? {
        guard state.isStalled, !keeper.isShared, let flight = state.flight else { return nil }
        return end(ofGivenUp: flight)
    }

    /// Whether so many given-up loads still run that no other may start.
    func isCrowded(at now: Duration) -> Bool {
        guard abandoned.count > RefreshPolicy.abandonedFlights else { return false }
        return abandoned.count { now < end(ofGivenUp: $0) } > RefreshPolicy.abandonedFlights
    }

    /// When all given-up loads should have ended at the latest; `nil`: there are none.
    private var givenUpUntil: Duration? {
        var until = fenced.last?.forgottenFrom
        for flight in abandoned { until = max(until ?? .zero, end(ofGivenUp: flight)) }
        return until
    }

    /// When the running load or store operation should have ended at the latest, even if nothing waits for it; `nil`: none runs.
    var isAtWorkUntil: Duration? {
        let ofFlight = state.flight.map { end(ofGivenUp: $0) }, ofStore = keeper.isAtWorkUntil
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
