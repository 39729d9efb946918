extension TokenService.StateMachine {
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
