extension TokenService.StateMachine {
    /// What callers join: the store's restore, the load, and the save of its token, or those of them that are needed.
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
}

extension TokenService.StateMachine.Flight {
    var isLoading: Bool {
        if case .loading = phase { true } else { false }
    }

    /// Its load begins, at once or after the store has been asked.
    mutating func beginLoad(_ number: Int, replacing grant: AccessToken?, at now: Duration) {
        load = number
        phase = .loading
        start = now
        deadline = limit
        previous = grant
    }

    /// A token is in hand and is about to be saved: from now on it is younger than what an older load may bring.
    mutating func hold(_ token: AccessToken, isGiven: Bool, publication: Int, at now: Duration) {
        publications = publication
        phase = .saving(token, isGiven: isGiven)
        // The load has ended in time; the save has a limit of its own.
        deadline = now + RefreshPolicy.storeTimeout
    }

    /// The token that is being saved.
    var savedToken: AccessToken? {
        if case .saving(let token, _) = phase { token } else { nil }
    }
}
