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
    ///
    /// - Returns: What was given up.
    @discardableResult
    mutating func reset(at now: Duration) -> AccessToken? {
        elapse(to: now)
        let fenced = fence()
        lastReset = generation
        let dropped = put(nil, .signedOut)
        announce(.reset)
        answerWaiters(.failure(TokenServiceError(.reset)))
        if hasStore {
            enqueue(.remove, fence: generation, handsOver: true, at: now)
        }
        cancel(fenced)
        return dropped
    }

    /// A new token for the same principal.
    ///
    /// - Returns: What was given up.
    @discardableResult
    mutating func replace(with token: AccessToken, at now: Duration) -> AccessToken? {
        elapse(to: now)
        let isStoreUnknown = isRestorePending
        let fenced = fence()
        let dropped = put(token, .replaced)
        announce(.replaced)
        let isExpired = token.isUnusable || token.lifetime.map { $0 <= .zero } ?? false
        var flight = newFlight(callers: isAwaited ? fenced?.callers ?? 0 : 0, at: now)
        // Those who wait go on waiting until the token is saved, or for the load that an expired one's grant pays for.
        let isSaved = hasStore && !isExpired && !storage.isLate
        if isSaved { hold(token, as: &flight, isGiven: true, at: now) }
        if hasStore {
            enqueue(
                .save(token, start: now), flight: isSaved ? flight.id : nil, fence: generation, handsOver: isStoreUnknown,
                at: now)
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
        return dropped
    }

    /// A person asked to try again: no pause, and no refusal of the grant, holds any longer.
    mutating func retryNow(at now: Duration) {
        elapse(to: now)
        backOff.reopen()
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
        if let flight { abandoned.append(flight) }
        abandoned.removeAll { !$0.isLoading }
        state = .empty
        return flight
    }

    /// Gives the grant up for another one, or for none; returns what reached the program.
    private mutating func put(_ token: AccessToken?, _ reason: DiscardedGrant.Reason) -> AccessToken? {
        let last = grant
        grant = token
        return last.flatMap { discard($0, reason) }
    }

    private mutating func cancel(_ flight: Flight?) {
        if let flight, flight.isLoading { add(.cancel(flight: flight.id)) }
    }
}
