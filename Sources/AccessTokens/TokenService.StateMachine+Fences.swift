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
    mutating func reset() {
        let fenced = fence()
        lastReset = generation
        grant = nil
        if hasStore { add(.remove) }
        announce(.reset)
        answerWaiters(.failure(TokenServiceError(.reset)))
        cancel(fenced)
    }

    /// A new token for the same principal.
    mutating func replace(with token: AccessToken, at now: Duration) {
        let fenced = fence()
        grant = token
        announce(.replaced)
        let isExpired = token.lifetime.map { $0 <= .zero } ?? false
        let callers = isAwaited ? fenced?.callers ?? 0 : 0
        if hasStore, isExpired { add(.save(token, start: now, flight: nil)) }
        if !isExpired, hasStore {
            // Those who wait go on waiting until it is saved.
            save(token, as: newFlight(callers: callers, at: now), isCurrent: true, isGiven: true, at: now)
        } else if !isExpired {
            state = .fresh(Servable(token, from: now, at: now, policy: policy, jitter: jitter()))
            answerWaiters(.success(token))
        } else if abandoned.count > RefreshPolicy.abandonedFlights {
            answerWaiters(.failure(TokenServiceError(.loadTimedOut)))
        } else {
            // Those who wait go on waiting, for the load that the expired token's grant pays for.
            state = .loading(startFlight(.loadStarted, callers: callers, at: now))
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
    private mutating func fence() -> Flight? {
        generation += 1
        publications += 1
        isRestorePending = false
        backOff = BackOff()
        rejections = Rejections()
        let flight = state.flight
        // Only what asks the server is worth counting; what asks the store is forgotten.
        if let flight, flight.isLoading { abandoned.append(flight) }
        abandoned.removeAll { !$0.isLoading }
        state = .empty
        return flight
    }

    /// After the answers, which come at once: cancelling runs the loader's own code.
    private mutating func cancel(_ flight: Flight?) {
        if let flight { add(.cancel(flight: flight.id)) }
    }
}
