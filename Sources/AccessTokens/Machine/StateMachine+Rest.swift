extension TokenService.StateMachine {
    /// Compares the deadlines with the time: the token's, the load's, then the store's.
    mutating func elapse(to now: Duration) {
        expireToken(at: now)
        timeOutFlight(at: now)
        forgetStalledFlight(at: now)
        timeOutStore(at: now)
        forgetLateOperation(at: now)
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

    /// When the operation that runs is taken for lost; `nil`: it isn't late, or the grant is shared.
    var storeLostFrom: Duration? {
        guard storage.isLate, !isShared else { return nil }
        return storage.operations.first.map { $0.deadline + policy.loadTimeout * (timeoutsUntilForgotten - 1) }
    }

    /// Whether so many given-up loads still run that no other may start.
    func isCrowded(at now: Duration) -> Bool {
        guard abandoned.count > RefreshPolicy.abandonedFlights else { return false }
        return abandoned.count { now < end(ofGivenUp: $0) } > RefreshPolicy.abandonedFlights
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

    /// Until when an end may be expected of loads that were given up; `nil`: there are none.
    private var givenUpUntil: Duration? {
        abandoned.reduce(fenced.last?.forgottenFrom) { until, flight in max(until ?? .zero, end(ofGivenUp: flight)) }
    }

    /// Until when a load or an operation of the store may be expected to end, also one that nothing waits for any longer; `nil`: none is
    /// under way.
    var isAtWorkUntil: Duration? {
        let isUnderWay = state.flight != nil || !storage.operations.isEmpty
        if isShared, isUnderWay { return .forever }
        let ofFlight = state.flight.map { end(ofGivenUp: $0) }
        let ofStore = storage.operations.first.map { $0.deadline + policy.loadTimeout * (timeoutsUntilForgotten - 1) }
        return [ofFlight, ofStore, givenUpUntil].compactMap(\.self).max()
    }

    /// Whether the end of something is to be expected.
    func isAtWork(at now: Duration) -> Bool {
        isAtWorkUntil.map { now < $0 } ?? false
    }

    /// From when on the service could be let go, and be made again for its next caller, without a loss, if nothing happens to it
    /// before; `nil`: not before another event.
    ///
    /// It would be lost who waits for a load, a grant that no store has, a sign-out that the store hasn't heard of, and why a token or
    /// a load is refused: its successor would ask at once. A load that was given up keeps the service itself while it lasts, so it is
    /// no reason to keep the service once it stands in no other's way.
    var restsFrom: Duration? {
        guard state.flight == nil || stalledUntil != nil, let storeEnd = storeRestsFrom,
            hasStore || grant.token?.refreshToken == nil,
            let backOffEnd = backOff.restsFrom, let rejectionsEnd = rejections.restsFrom
        else { return nil }
        let isRefreshFailing = state.cached.map { $0.failedRefreshes > 0 } ?? false
        let pauseEnd = isRefreshFailing ? state.cached?.expiry : .zero
        let loadEnd = max(stalledUntil ?? .zero, givenUpUntil ?? .zero)
        return pauseEnd.map { max($0, loadEnd, storeEnd, backOffEnd, rejectionsEnd) }
    }

    /// From when on the store has what the service wants it to have, or is asked anew: it has lost the callback of a restore.
    private var storeRestsFrom: Duration? {
        // Of a shared store the session knows more: a later flight may have written what failed.
        if isShared ? storage.operations.isEmpty : storage.isSettled { return .zero }
        return storage.operations.count == 1 && !storage.operations[0].isWrite ? storeLostFrom : nil
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
