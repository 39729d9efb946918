extension TokenService.StateMachine {
    /// Compares the deadlines with the time: the token's, the load's, then the store's.
    mutating func elapse(to now: Duration) {
        expireToken(at: now)
        timeOutFlight(at: now)
        timeOutStore(at: now)
    }

    /// Why no load may start now.
    func obstacle(at now: Duration) -> TokenServiceError? {
        if let error = backOff.obstacle(at: now) ?? rejections.obstacle(at: now) { return error }
        return abandoned.count > RefreshPolicy.abandonedFlights ? TokenServiceError(.loadTimedOut) : nil
    }

    /// From when on the service could be let go, and be made again for its next caller, without a loss, if nothing happens to it
    /// before; `nil`: not before another event.
    ///
    /// It would be lost who waits for a load, a grant that no store has, a sign-out that the store hasn't heard of, and why a token or
    /// a load is refused: its successor would ask at once.
    var restsFrom: Duration? {
        // Of a shared store the session knows more: a later flight may have written what failed.
        let isSettled = isShared ? storage.operations.isEmpty : storage.isSettled
        guard state.flight == nil, abandoned.isEmpty, isSettled, hasStore || grant.token?.refreshToken == nil,
            let backOffEnd = backOff.restsFrom, let rejectionsEnd = rejections.restsFrom
        else { return nil }
        let isRefreshFailing = state.cached.map { $0.failedRefreshes > 0 } ?? false
        let pauseEnd = isRefreshFailing ? state.cached?.expiry : .zero
        return pauseEnd.map { max($0, backOffEnd, rejectionsEnd) }
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
