extension TokenService.StateMachine {
    /// A resource server refused a token: compare, then drop.
    mutating func invalidate(_ token: AccessToken, at now: Duration) {
        elapse(to: now)
        rejections.remember(token, at: now)
        guard state.servable?.token.value == token.value else { return }
        state.dropServable()
        // A load that already runs is joined, not repeated, so it was not caused by this.
        if state.flight == nil { rejections.markNextLoad() }
        announce(.invalidated)
    }

    /// Signed out: nothing from before is seen by calls that start after this.
    mutating func reset(at now: Duration) {
        let fenced = fence(.signedOut)
        lastReset = generation
        let dropped = grant
        grant = nil
        if let dropped { discard(dropped, .signedOut) }
        announce(.reset)
        answerWaiters(.failure(TokenServiceError(.reset)))
        if hasStore {
            enqueue(.remove, fence: generation, handsOver: true, handedOver: [dropped].compactMap { $0 }, at: now)
        }
        cancel(fenced)
    }

    /// A new token for the same principal.
    mutating func replace(with token: AccessToken, at now: Duration) {
        let isStoreUnknown = isRestorePending
        let fenced = fence(.replaced)
        let dropped = grant
        grant = token
        if let dropped { discard(dropped, .replaced) }
        announce(.replaced)
        let isExpired = token.isUnusable || token.lifetime.map { $0 <= .zero } ?? false
        var flight = newFlight(callers: isAwaited ? fenced?.callers ?? 0 : 0, at: now)
        // Those who wait go on waiting until the token is saved, or for the load that an expired one's grant pays for.
        let isSaved = hasStore && !isExpired && !storage.isLate
        if isSaved { hold(token, as: &flight, isGiven: true, at: now) }
        if hasStore {
            enqueue(
                .save(token, start: now), flight: isSaved ? flight.id : nil, fence: generation, handsOver: isStoreUnknown,
                handedOver: [dropped, token].compactMap { $0 }, at: now)
        }
        if isSaved {
            state = .loading(flight)
        } else if !isExpired {
            state = .fresh(Servable(token, from: now, at: now, policy: policy, jitter: jitter()))
            answerWaiters(.success(token))
        } else if abandoned.count > RefreshPolicy.abandonedFlights {
            answerWaiters(.failure(TokenServiceError(.loadTimedOut)))
        } else {
            state = .loading(startLoad(of: flight, .loadStarted, at: now))
        }
        cancel(fenced)
    }

    /// A person asked to try again: no pause, and no refusal of the grant, holds any longer.
    mutating func retryNow(at now: Duration) {
        elapse(to: now)
        backOff = BackOff()
        guard var servable = state.servable else { return }
        servable.failedRefreshes = 0
        servable.refreshFrom = servable.refreshStart
        state.install(servable)
    }

    /// Cuts off everything that began before; returns the flight that this ended.
    private mutating func fence(_ reason: DiscardedGrant.Reason) -> Flight? {
        generation += 1
        publications += 1
        isRestorePending = false
        backOff = BackOff()
        rejections = Rejections()
        let flight = state.flight
        for case .saving(let token, _) in (abandoned + [flight].compactMap { $0 }).map(\.phase)
        where !(grant.map { $0.isSameGrant(as: token) } ?? false) { discard(token, reason) }
        // Only what asks the server is worth counting; what asks the store is forgotten.
        if let flight { abandoned.append(flight) }
        abandoned.removeAll { !$0.isLoading }
        state = .empty
        return flight
    }

    private mutating func cancel(_ flight: Flight?) {
        if let flight, flight.isLoading { add(.cancel(flight: flight.id)) }
    }
}
