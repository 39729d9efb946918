extension TokenService {
    /// What callers see without coming in: the token to hand out or the load to join, and the fence they stand behind.
    struct Snapshot: Sendable {
        private(set) var cached: CachedToken? {
            didSet { nothingDueUntil = Self.nextDueTime(of: cached) }
        }
        let generation: Int
        /// The number of the token that is handed out, which no other has; `nil` if there is none.
        let publication: Int?
        /// Until when callers may join the load that runs; `nil` for none.
        let joinableUntil: Duration?
        /// When time alone next changes something for those who wait; `nil`: it doesn't.
        let nextDeadline: Duration?
        /// Until then the token is handed out and nothing else is to be done: the one comparison of nearly every call.
        private(set) var nothingDueUntil: Duration

        init(
            cached: CachedToken?, generation: Int, publication: Int? = nil, joinableUntil: Duration? = nil,
            nextDeadline: Duration? = nil
        ) {
            self.cached = cached
            self.generation = generation
            self.publication = publication
            self.joinableUntil = joinableUntil
            self.nextDeadline = nextDeadline
            nothingDueUntil = Self.nextDueTime(of: cached)
        }

        /// The token, if it may be handed out at this time.
        func token(at now: Duration) -> AccessToken? {
            guard let cached, cached.isValid(at: now) else { return nil }
            return cached.token
        }

        /// Whether the caller is to start a refresh: the first one in the soft window is.
        mutating func claimRefresh(at now: Duration) -> Bool {
            guard isRefreshDue(at: now) else { return false }
            cached?.refreshFrom = nil
            return true
        }

        /// Whether the first caller to claim a refresh gets it now.
        func isRefreshDue(at now: Duration) -> Bool {
            cached?.isRefreshDue(at: now) ?? false
        }

        private static func nextDueTime(of cached: CachedToken?) -> Duration {
            guard let cached else { return .zero }
            let never = Duration(secondsComponent: .max, attosecondsComponent: 0)
            return min(cached.expiry ?? never, cached.refreshFrom ?? never)
        }
    }
}

extension TokenService.StateMachine {
    /// The part of the state that callers need; no refresh is due while one runs.
    var snapshot: TokenService.Snapshot {
        var cached = state.cached
        if state.flight != nil { cached?.refreshFrom = nil }
        var limit: Duration?
        if case .loading(let flight) = state { limit = flight.deadline }
        return TokenService.Snapshot(
            cached: cached, generation: generation, publication: cached == nil ? nil : publications, joinableUntil: limit,
            nextDeadline: nextDeadline)
    }

    /// The next moment at which time alone changes something for those who wait; `nil`: there is none.
    var nextDeadline: Duration? {
        var deadlines = [storage.nextDeadline].compactMap { $0 }
        if let flight = state.runningFlight, flight.isLoading { deadlines.append(flight.deadline) }
        return deadlines.min()
    }
}
