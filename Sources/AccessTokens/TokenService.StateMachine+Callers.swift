extension TokenService.StateMachine {
    /// What a caller gets: an answer now, or that of the current flight.
    enum Retrieval: Sendable {
        case answer(Result<AccessToken, TokenServiceError>)
        case wait
    }

    /// Callers that found neither a token nor a flight to join in the lobby ask for a token.
    ///
    /// - Parameters:
    ///   - callers: How many ask at once (a batch of callbacks is one waiter).
    ///   - seen: The generation when they called: those from before a reset must not load after it.
    mutating func retrieve(callers: Int = 1, seen: Int, at now: Duration) -> Retrieval {
        elapse(to: now)
        guard seen >= lastReset else { return .answer(.failure(TokenServiceError(.reset))) }
        switch state {
        case .fresh(let servable):
            refreshAhead(at: now)
            return .answer(.success(servable.token))
        case .refreshing(let servable, _), .stalled(let servable?, _):
            return .answer(.success(servable.token))
        case .stalled(nil, _):
            return .answer(.failure(TokenServiceError(.loadTimedOut)))
        case .loading(var flight):
            flight.callers += callers
            state = .loading(flight)
            return .wait
        case .empty:
            if let error = obstacle(at: now) { return .answer(.failure(error)) }
            if !isRestorePending {
                state = .loading(startFlight(.loadStarted, callers: callers, at: now))
            } else if storage.isLate {
                return .answer(.failure(.storeIsLate))
            } else {
                startRestore(callers, at: now)
            }
            return .wait
        }
    }

    /// Somebody noticed that the current token is in its soft window.
    mutating func refreshAhead(at now: Duration) {
        elapse(to: now)
        guard case .fresh(var servable) = state, let due = servable.refreshFrom, due <= now else { return }
        if abandoned.count > RefreshPolicy.abandonedFlights {
            servable.refreshFrom = now + RefreshPolicy.refreshPause(afterFailures: 1, jitter: jitter())
            state = .fresh(servable)
        } else {
            state = .refreshing(servable, startFlight(.refreshStarted, callers: 0, at: now))
        }
    }

    /// Compares the deadlines with the time: the token's, the load's, then the store's.
    mutating func elapse(to now: Duration) {
        expireToken(at: now)
        timeOutFlight(at: now)
        timeOutStore(at: now)
    }

    /// The next moment at which time alone changes something for those who wait; `nil`: there is none.
    var nextDeadline: Duration? {
        var deadlines = [storage.nextDeadline].compactMap { $0 }
        if let flight = state.runningFlight, flight.isLoading { deadlines.append(flight.deadline) }
        return deadlines.min()
    }

    mutating func expireToken(at now: Duration) {
        guard let expiry = state.servable?.expiry, expiry <= now else { return }
        state.dropServable()
    }

    /// Why no load may start now.
    func obstacle(at now: Duration) -> TokenServiceError? {
        if let error = backOff.obstacle(at: now) ?? rejections.obstacle(at: now) { return error }
        return abandoned.count > RefreshPolicy.abandonedFlights ? TokenServiceError(.loadTimedOut) : nil
    }

    mutating func startFlight(_ name: TokenEvent.Name, callers: Int, at now: Duration) -> Flight {
        startLoad(of: newFlight(callers: callers, at: now), name, at: now)
    }

    /// The flight's load begins, at once or after the store has been asked.
    mutating func startLoad(of flight: Flight, _ name: TokenEvent.Name, at now: Duration) -> Flight {
        rejections.loadStarts(at: now)
        loads += 1
        var flight = flight
        flight.load = loads
        flight.phase = .loading
        flight.start = now
        flight.deadline = flight.limit
        flight.previous = grant
        add(.start(flight))
        announce(name, flight)
        return flight
    }

    mutating func newFlight(_ phase: Phase = .loading, callers: Int, at now: Duration) -> Flight {
        flights += 1
        let limit = now + policy.loadTimeout
        return Flight(
            id: flights, generation: generation, start: now, limit: limit, deadline: limit, publications: publications,
            callers: callers, phase: phase)
    }
}
