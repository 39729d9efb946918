extension TokenService.StateMachine {
    /// How long a restore may take; it is part of its load.
    var restoreLimit: Duration { min(policy.loadTimeout, RefreshPolicy.storeTimeout) }

    /// A restore has taken too long.
    var restoreIsLate: TokenServiceError { .storeIsLate(after: restoreLimit) }

    /// When a load that was given up no longer blocks others, although it has not ended.
    func end(ofGivenUp flight: borrowing Flight) -> Duration {
        flight.limit + policy.loadTimeout * (timeoutsUntilForgotten - 1)
    }

    /// When the stalled load no longer blocks others; `nil` if none has stalled, or if its grant is shared.
    var stalledUntil: Duration? {
        guard state.isStalled, !isShared, let flight = state.flight else { return nil }
        return end(ofGivenUp: flight)
    }

    /// When the running operation counts as lost; `nil` if it isn't late, or if the grant is shared.
    var storeLostFrom: Duration? {
        guard storage.isLate, !isShared else { return nil }
        return storage.operations.first.map { $0.deadline + policy.loadTimeout * (timeoutsUntilForgotten - 1) }
    }

    /// Whether so many given-up loads still run that no other may start.
    func isCrowded(at now: Duration) -> Bool {
        guard abandoned.count > RefreshPolicy.abandonedFlights else { return false }
        return abandoned.count { now < end(ofGivenUp: $0) } > RefreshPolicy.abandonedFlights
    }

    /// From when on a caller that gets this token starts a refresh; `nil`: none does.
    ///
    /// Nothing keeps a program alive for a load that no caller waits for. If the program ends in the middle of a load that spends
    /// a refresh token, the server has rotated the token, and the new one is lost. A program that has just begun may be a tool
    /// that ends in a moment, so for a while such a load starts only if a caller waits for it.
    func refreshStart(of cached: CachedToken) -> Duration? {
        guard !isDrained else { return nil }
        return spendsGrant ? cached.refreshFrom.map { max($0, RefreshPolicy.earliestSpending) } : cached.refreshFrom
    }

    private var spendsGrant: Bool { !isRepeatable && (borrowsGrant || grant.token?.refreshToken != nil) }

    /// Whether the program is so young that a load starts only if a caller waits for it.
    func isTooEarly(at now: Duration) -> Bool { spendsGrant && now < RefreshPolicy.earliestSpending }

    /// Until when loads that were given up may be expected to end; `nil`: there are none.
    private var givenUpUntil: Duration? {
        var until = fenced.last?.forgottenFrom
        for flight in abandoned { until = max(until ?? .zero, end(ofGivenUp: flight)) }
        return until
    }

    /// Until when a load or an operation of the store may be expected to end, even if nothing waits for it any longer; `nil`:
    /// none runs.
    var isAtWorkUntil: Duration? {
        let isUnderWay = state.flight != nil || !storage.operations.isEmpty
        if isShared, isUnderWay { return .forever }
        let ofFlight = state.flight.map { end(ofGivenUp: $0) }
        let ofStore = storage.operations.first.map { $0.deadline + policy.loadTimeout * (timeoutsUntilForgotten - 1) }
        return [ofFlight, ofStore, givenUpUntil].compactMap(\.self).max()
    }

    /// Whether any work is expected to end.
    func isAtWork(at now: Duration) -> Bool {
        isAtWorkUntil.map { now < $0 } ?? false
    }

    /// From when on the service could be released, and be made again for its next caller, without a loss, if nothing happens to
    /// it before; `nil`: not before another event.
    ///
    /// Letting it go now would lose waiting callers, a grant that no store has, a sign-out that the store hasn't heard of, or the
    /// reason why a token or a load is refused: its successor would ask the server at once. A load that was given up keeps the
    /// service alive by itself, so it is no reason to keep the service once it blocks no other load.
    var restsFrom: Duration? {
        guard state.flight == nil || stalledUntil != nil, let storeEnd = storeRestsFrom,
            hasStore || grant.token?.refreshToken == nil,
            let backOffEnd = backOff.restsFrom, let rejectionsEnd = rejections.restsFrom
        else { return nil }
        guard let pauseEnd = state.isRefreshFailing ? state.expiry : .zero else { return nil }
        let loadEnd = max(stalledUntil ?? .zero, givenUpUntil ?? .zero)
        // Two by two: with more, `max` makes an array.
        return max(max(pauseEnd, loadEnd), max(storeEnd, max(backOffEnd, rejectionsEnd)))
    }

    /// From when on the store has what the service wants it to have, or is asked anew because the callback of a restore was lost.
    private var storeRestsFrom: Duration? {
        // The session knows more about a shared store: a later flight may have written what failed.
        if isShared ? storage.operations.isEmpty : storage.isSettled { return .zero }
        return storage.operations.count == 1 && !storage.operations[0].isWrite ? storeLostFrom : nil
    }
}

extension BackOff {
    /// From when on the failure count no longer matters: the longest pause after the server could have been asked again.
    fileprivate var restsFrom: Duration? {
        switch gate {
        case .open: .zero
        case .opens(let moment): moment + RefreshPolicy.longestPause
        case .closed: nil
        }
    }
}

extension Rejections {
    /// From when on no refused token could be handed out again, and no further load would count as caused by refusals.
    fileprivate var restsFrom: Duration? {
        var end = (loads.last ?? .zero) + (loads.isEmpty ? .zero : RefreshPolicy.invalidationPeriod)
        for (_, until) in tokens {
            guard let until else { return nil }
            end = max(end, until)
        }
        return end
    }
}
