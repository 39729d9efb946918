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

    /// When a caller that gets this token starts a refresh; `nil`: never.
    ///
    /// A load that no caller waits for doesn't keep a program alive. If the program ends in the middle of a load that spends a
    /// refresh token, the server has rotated the token, and the new one is lost. A young program may be a tool that ends soon, so
    /// at first such a load starts only if a caller waits for it.
    func refreshStart(of cached: CachedToken) -> Duration? {
        guard !isDrained else { return nil }
        return spendsGrant ? cached.refreshFrom.map { max($0, RefreshPolicy.earliestSpending) } : cached.refreshFrom
    }

    private var spendsGrant: Bool { !isRepeatable && (borrowsGrant || grant.token?.refreshToken != nil) }

    /// Whether the program is so young that a load starts only if a caller waits for it.
    func isTooEarly(at now: Duration) -> Bool { spendsGrant && now < RefreshPolicy.earliestSpending }

    /// When all given-up loads can be expected to have ended; `nil`: there are none.
    private var givenUpUntil: Duration? {
        var until = fenced.last?.forgottenFrom
        for flight in abandoned { until = max(until ?? .zero, end(ofGivenUp: flight)) }
        return until
    }

    /// When the running load or store operation can be expected to have ended, even if nothing waits for it; `nil`: none runs.
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

    /// When the service can be released, and made again for its next caller, without a loss; `nil`: not before another event.
    ///
    /// Letting it go now would lose waiting callers, a grant that no store has, a sign-out that the store hasn't heard of, or the
    /// reason why a token or a load is refused: a new service would ask the server at once. A load that was given up keeps the
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

    /// When the store has all that it should have, or is read anew because the callback of a restore was lost.
    private var storeRestsFrom: Duration? {
        // The session knows more about a shared store: a later flight may have written what failed.
        if isShared ? storage.operations.isEmpty : storage.isSettled { return .zero }
        return storage.operations.count == 1 && !storage.operations[0].isWrite ? storeLostFrom : nil
    }
}

extension BackOff {
    /// When the failure count no longer matters: the longest pause after the moment of the next attempt.
    fileprivate var restsFrom: Duration? {
        switch gate {
        case .open: .zero
        case .opens(let moment): moment + RefreshPolicy.longestPause
        case .closed: nil
        }
    }
}

extension Rejections {
    /// When no refused token can be handed out again, and no further load would count as caused by refusals.
    fileprivate var restsFrom: Duration? {
        var end = (loads.last ?? .zero) + (loads.isEmpty ? .zero : RefreshPolicy.invalidationPeriod)
        for (_, until) in tokens {
            guard let until else { return nil }
            end = max(end, until)
        }
        return end
    }
}
