extension TokenService.StateMachine {
    /// A load returned a token.
    mutating func loaded(_ token: AccessToken, by id: Int, at now: Duration) {
        expireToken(at: now)
        // What has come is judged before any limit of its own; the others are compared afterwards.
        defer { elapse(to: now) }
        guard case (var flight, let isCurrent)? = endLoad(id, bringing: token) else { return }
        flight.isCostly = token.refreshToken != nil && token.refreshToken != flight.previous?.refreshToken
        // First of all the grant is kept: a rotated refresh token must survive whatever is wrong with its access token.
        let isGrant = !token.isUnusable || token.refreshToken != nil
        if isGrant, keep(token, isServable: isServable(token, of: flight, at: now), of: flight), hasStore {
            save(token, of: flight, isCurrent: isCurrent, at: now)
        } else {
            accept(token, of: flight, isCurrent: isCurrent, at: now)
        }
    }

    /// Keeps a load's new grant, if it can.
    ///
    /// The grant that the load has used is used up. Another one came meanwhile, from an older load, and one of the two is given
    /// up: the new one, if it brings nothing to hand out while the other's token is handed out, or is about to be.
    private mutating func keep(_ token: AccessToken, isServable: Bool, of flight: Flight) -> Bool {
        guard let last = grant, !(flight.previous.map { $0.isSameGrant(as: last) } ?? false) else {
            grant = token
            return true
        }
        let saving = abandoned.map(\.savedToken) + [state.servable?.token]
        guard isServable || !saving.contains(where: { $0?.isSameGrant(as: last) ?? false }) else {
            discard(token, .superseded)
            return false
        }
        grant = token
        // Whoever revokes it ends its token, too: callers wait until the new one is saved.
        if discard(last, .superseded) != nil, state.servable?.token.isSameGrant(as: last) ?? false { state.dropServable() }
        return true
    }

    /// A token is in hand: it answers those who wait and is handed out from now on, if it is good for that.
    mutating func accept(
        _ token: AccessToken, of flight: Flight, isCurrent: Bool, isGiven: Bool = false, at now: Duration
    ) {
        let verdict = judge(token, of: flight, at: now)
        if case .failure(let error) = verdict {
            guard isCurrent else { return }
            if error.code == .tokenRejectedBefore { rejections.markNextLoad() }
            return fail(error, of: flight, retryAfter: nil, at: now)
        }
        publications += 1
        backOff = BackOff()
        if case .success(let servable?) = verdict { state.install(servable) }
        var event = flight
        if !isCurrent { event.callers = state.flight?.callers ?? 0 }
        if !isGiven { announce(.loadSucceeded, event) }
        answerWaiters(.success(token))
    }

    /// A load threw.
    ///
    /// - Parameter salvaged: A new grant that came with the failure.
    mutating func failed(
        _ error: TokenServiceError, salvaged: AccessToken? = nil, retryAfter: Duration? = nil, by id: Int, at now: Duration
    ) {
        expireToken(at: now)
        defer { elapse(to: now) }
        let wasStalled = state.isStalled
        guard case (var flight, let isCurrent)? = endLoad(id, bringing: salvaged) else { return }
        if let salvaged {
            flight.isCostly = true
            if keep(salvaged, isServable: false, of: flight), hasStore { enqueue(.save(salvaged, start: flight.start), at: now) }
        }
        guard isCurrent else { return }
        // The time-out has counted as the failure; only news that time cannot mend, or the server's wish, is added to it.
        if wasStalled, error.remedy == .retry, salvaged == nil, RefreshPolicy.honoured(retryAfter: retryAfter) == nil { return }
        fail(error, of: flight, retryAfter: retryAfter, at: now)
    }

    /// The current load has run for too long.
    mutating func timeOutFlight(at now: Duration) {
        guard let flight = state.runningFlight, flight.isLoading, flight.deadline <= now else { return }
        if isRepeatable {
            state.endFlight()
            abandoned.append(flight)
        } else {
            state = .stalled(state.servable, flight)
        }
        fail(TokenServiceError(.loadTimedOut), of: flight, retryAfter: nil, at: now)
        if isRepeatable { add(.cancel(flight: flight.id)) }
    }

    /// Takes a flight that ended out of the state; `nil` if it was forgotten, or its result is outdated.
    mutating func end(_ id: Int) -> (flight: Flight, isCurrent: Bool)? {
        guard let ended = remove(id), ended.isCurrent || ended.flight.publications == publications else { return nil }
        return ended
    }

    /// The same for a load; what it brings too late goes to the program.
    private mutating func endLoad(_ id: Int, bringing token: AccessToken?) -> (flight: Flight, isCurrent: Bool)? {
        guard let ended = remove(id) else { return nil }
        if ended.isCurrent || ended.flight.publications == publications { return ended }
        let generation = ended.flight.generation
        let reason: DiscardedGrant.Reason =
            generation < lastReset ? .signedOut : generation < self.generation ? .replaced : .superseded
        if let token { discard(token, reason) }
        return nil
    }

    /// Takes a flight that ended out of the state, whatever its result is worth.
    mutating func remove(_ id: Int) -> (flight: Flight, isCurrent: Bool)? {
        if let flight = state.flight, flight.id == id {
            state.endFlight()
            return (flight, true)
        }
        return abandoned.firstIndex { $0.id == id }.map { (abandoned.remove(at: $0), false) }
    }

    /// What an arriving token is good for: to keep, only to answer those who wait (`nil`), or for nothing.
    private mutating func judge(
        _ token: AccessToken, of flight: Flight, at now: Duration
    ) -> Result<Servable?, TokenServiceError> {
        if let flaw = flaw(of: token, from: flight, at: now) { return .failure(flaw) }
        let servable = Servable(token, from: flight.start, at: now, policy: policy, jitter: jitter())
        if let expiry = servable.expiry, expiry <= now {
            // Nobody's answer, and a good token is there: that is a refresh that gained nothing.
            return state.servable == nil ? .success(nil) : .failure(TokenServiceError(.tokenExpiredOnArrival))
        }
        return .success(servable)
    }

    /// Why an arriving token is good for nothing.
    private func flaw(of token: AccessToken, from flight: Flight, at now: Duration) -> TokenServiceError? {
        if rejections.contains(token, at: now) { return TokenServiceError(.tokenRejectedBefore) }
        if let lifetime = token.lifetime, flight.start + min(lifetime, RefreshPolicy.longestLifetime) <= now {
            return TokenServiceError(.tokenExpiredOnArrival)
        }
        return token.isUnusable ? TokenServiceError(.loadFailed, underlying: EmptyAccessToken()) : nil
    }

    /// Whether an arriving token will be handed out, be it only to those who wait.
    private func isServable(_ token: AccessToken, of flight: Flight, at now: Duration) -> Bool {
        let expiry = token.lifetime.map { flight.start + policy.hardExpiry(forLifetime: $0) }
        return flaw(of: token, from: flight, at: now) == nil && (state.servable == nil || expiry.map { now < $0 } ?? true)
    }

    /// Counts a failure of the flight that just ended: softly while a token is good, else towards the back-off.
    mutating func fail(_ error: TokenServiceError, of flight: Flight, retryAfter: Duration?, at now: Duration) {
        guard var servable = state.servable else {
            let error = backOff.record(
                error, retryAfter: retryAfter, isCostly: flight.isCostly, jitter: jitter(), at: now)
            announce(error.code == .storeFailed ? .storeFailed : .loadFailed, flight, error: error)
            return answerWaiters(.failure(error))
        }
        // An older load delivered while this one ran: nobody waits, nothing is missing.
        guard flight.publications == publications else { return }
        servable.failedRefreshes += 1
        let error = backOff.judge(error)
        let wish = RefreshPolicy.honoured(retryAfter: retryAfter)
        if error.remedy == .signIn {
            servable.refreshFrom = nil
        } else if let wish, !flight.isCostly || wish > RefreshPolicy.longestRefreshPause {
            // The server's own wish holds beyond hard expiry, for callers too; our pauses never do.
            servable.refreshFrom = now + wish
            backOff.hold(error, until: now + wish)
        } else {
            let failures = flight.isCostly || error.remedy != .retry ? .max : servable.failedRefreshes
            servable.refreshFrom = now + RefreshPolicy.refreshPause(afterFailures: failures, jitter: jitter())
        }
        state.install(servable)
        announce(.refreshFailed, flight, error: error)
    }
}
