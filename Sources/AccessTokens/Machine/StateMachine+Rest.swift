extension TokenService.StateMachine {
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
