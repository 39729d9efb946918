extension TokenService.StateMachine {
    /// The first miss asks the store what an earlier run left.
    mutating func startRestore(_ callers: Int, at now: Duration) -> Flight {
        let flight = newFlight(.restoring, callers: callers, at: now)
        add(.restore(flight))
        return flight
    }

    /// The store answered; `nil`: it is empty.
    ///
    /// - Parameter found: The token, and how long ago its load began by the wall clock, which may be wrong.
    mutating func restored(_ found: (token: AccessToken, age: Duration)?, by id: Int, at now: Duration) {
        guard let (flight, isCurrent) = end(id) else { return }
        isRestorePending = false
        if let found {
            grant = found.token
            let lifetime = found.token.lifetime ?? .zero
            // The wall clock may have been moved: the token is never older than its life, nor younger than new.
            let start = now - min(max(found.age, .zero), max(lifetime, .zero))
            let servable = Servable(found.token, from: start, at: now, policy: policy, jitter: jitter())
            if servable.expiry.map({ now < $0 }) ?? true, !rejections.contains(found.token, at: now) {
                publications += 1
                state.install(servable)
                announce(.restored, flight)
                return answerWaiters(.success(found.token))
            }
        }
        guard isCurrent, isAwaited else { return }
        // Nothing has come into a load's way since the restore began: what does, ends it.
        state = .loading(startFlight(.loadStarted, callers: flight.callers, at: now))
    }

    /// The store could not answer; it may be locked, which is not the same as empty, so no loader is called.
    mutating func restoreFailed(_ error: TokenServiceError, by id: Int, at now: Duration) {
        guard let (flight, isCurrent) = end(id), isCurrent else { return }
        fail(error, of: flight, retryAfter: nil, at: now)
    }

    /// Saves a token before anybody gets it; callers that come meanwhile wait for that.
    mutating func save(_ token: AccessToken, as flight: Flight, isCurrent: Bool, isGiven: Bool, at now: Duration) {
        var flight = flight
        flight.phase = .saving(token, isGiven: isGiven)
        // The load has ended in time; the save has a limit of its own.
        flight.deadline = now + RefreshPolicy.longestLifetime
        if isCurrent {
            state = state.servable.map { .refreshing($0, flight) } ?? .loading(flight)
        } else {
            abandoned.append(flight)
        }
        add(.save(token, start: flight.start, flight: flight.id))
    }

    /// A save ended, or took too long, which is an event and not the callers' failure; the fence is checked again.
    mutating func saved(by id: Int, error: TokenServiceError?, at now: Duration) {
        expireToken(at: now)
        guard let (flight, isCurrent) = end(id), case .saving(let token, let isGiven) = flight.phase else { return }
        if let error { announce(.storeFailed, flight, error: error) }
        accept(token, of: flight, isCurrent: isCurrent, isGiven: isGiven, at: now)
    }
}

extension TokenService.StateMachine.Flight {
    var isLoading: Bool {
        if case .loading = phase { true } else { false }
    }

    var isRestoring: Bool {
        if case .restoring = phase { true } else { false }
    }
}
