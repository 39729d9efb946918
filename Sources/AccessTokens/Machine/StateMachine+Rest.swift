extension TokenService.StateMachine {
    /// Compares the deadlines with the time: the token's, the load's, then the store's.
    mutating func elapse(to now: Duration) {
        expireToken(at: now)
        timeOutFlight(at: now)
        forgetStalledFlight(at: now)
        timeOutStore(at: now)
    }

    /// How long a restore may take, which is a part of its load.
    var restoreLimit: Duration { min(policy.loadTimeout, RefreshPolicy.storeTimeout) }

    /// A restore has taken too long.
    var restoreIsLate: TokenServiceError { .storeIsLate(after: restoreLimit) }

    /// When a load that was given up stands in no other's way any longer, though it has not ended.
    func end(ofGivenUp flight: borrowing Flight) -> Duration {
        flight.limit + policy.loadTimeout * (timeoutsUntilForgotten - 1)
    }

    /// When the stalled load stands in no other's way any longer; `nil`: none has stalled, or its grant is shared.
    var stalledUntil: Duration? {
        guard state.isStalled, !isShared, let flight = state.flight else { return nil }
        return end(ofGivenUp: flight)
    }

    /// Whether a given-up load still counts: one from before a fence doesn't, nor an old one.
    func counts(_ flight: borrowing Flight, at now: Duration) -> Bool {
        flight.generation == generation && now < end(ofGivenUp: flight)
    }

    /// Whether so many given-up loads still run that no other may start.
    func isCrowded(at now: Duration) -> Bool {
        guard abandoned.count > RefreshPolicy.abandonedFlights else { return false }
        return abandoned.count { counts($0, at: now) } > RefreshPolicy.abandonedFlights
    }

    /// Why no load may start now.
    func obstacle(at now: Duration) -> TokenServiceError? {
        if isDrained { return TokenServiceError(.drained) }
        if let error = backOff.obstacle(at: now) ?? rejections.obstacle(at: now) { return error }
        return isCrowded(at: now) ? TokenServiceError(.loadTimedOut) : nil
    }

    /// From when on a caller that gets this token starts a refresh; `nil`: none does.
    ///
    /// Nothing keeps a program alive for a load that no caller waits for. If the program ends in the middle of one that spends a
    /// refresh token, the server has rotated it, and the new one is lost. A program that has just begun may be a tool that ends in a
    /// moment, so for a while such a load starts only where a caller waits for it.
    func refreshStart(of cached: CachedToken) -> Duration? {
        guard !isDrained else { return nil }
        return spendsGrant ? cached.refreshFrom.map { max($0, RefreshPolicy.earliestSpending) } : cached.refreshFrom
    }

    private var spendsGrant: Bool { !isRepeatable && (borrowsGrant || grant.token?.refreshToken != nil) }

    /// Whether the program is so young that a load starts only where a caller waits for it.
    func isTooEarly(at now: Duration) -> Bool { spendsGrant && now < RefreshPolicy.earliestSpending }

    /// Whether a load or an operation of the store is under way, also one that nothing waits for any longer.
    var isAtWork: Bool {
        state.flight != nil || !abandoned.isEmpty || !storage.operations.isEmpty
    }

    /// From when on the service could be let go, and be made again for its next caller, without a loss, if nothing happens to it
    /// before; `nil`: not before another event.
    ///
    /// It would be lost who waits for a load, a grant that no store has, a sign-out that the store hasn't heard of, and why a token or
    /// a load is refused: its successor would ask at once. A load that was given up keeps the service itself while it lasts, so it is
    /// no reason to keep the service once it stands in no other's way.
    var restsFrom: Duration? {
        // Of a shared store the session knows more: a later flight may have written what failed.
        let isSettled = isShared ? storage.operations.isEmpty : storage.isSettled
        guard let loadsEnd = loadsRestFrom, isSettled, hasStore || grant.token?.refreshToken == nil,
            let backOffEnd = backOff.restsFrom, let rejectionsEnd = rejections.restsFrom
        else { return nil }
        let isRefreshFailing = state.cached.map { $0.failedRefreshes > 0 } ?? false
        let pauseEnd = isRefreshFailing ? state.cached?.expiry : .zero
        return pauseEnd.map { max($0, loadsEnd, backOffEnd, rejectionsEnd) }
    }

    /// From when on no load is a reason to keep the service; `nil`: one is under way that has its time.
    private var loadsRestFrom: Duration? {
        guard state.flight == nil || state.isStalled else { return nil }
        guard !abandoned.isEmpty || state.isStalled else { return .zero }
        return (abandoned + [state.flight].compactMap { $0 }).map { end(ofGivenUp: $0) }.max()
    }
}

extension BackOff {
    /// From when on nothing is lost with the failure count: the longest pause after the server could have been asked again.
    fileprivate var restsFrom: Duration? {
        switch gate {
        case .open: .zero
        case .opens(let moment): moment + RefreshPolicy.longestPause
        case .closed: nil
        }
    }
}

extension Rejections {
    /// From when on no refused token could be handed out again, and no further load be blamed on refusals.
    fileprivate var restsFrom: Duration? {
        var end = (loads.last ?? .zero) + (loads.isEmpty ? .zero : RefreshPolicy.invalidationPeriod)
        for (_, until) in tokens {
            guard let until else { return nil }
            end = max(end, until)
        }
        return end
    }
}
