extension TokenService.StateMachine {
    /// What the store had: a token, and how long ago its load began by the wall clock, which may be wrong.
    typealias Found = (token: AccessToken, age: Duration)

    /// The first miss asks the store what an earlier run left; its load has the rest of the time.
    mutating func startRestore(_ callers: Int, at now: Duration) {
        var flight = newFlight(.restoring, callers: callers, at: now)
        flight.deadline = min(flight.limit, now + RefreshPolicy.storeTimeout)
        state = .loading(flight)
        enqueue(.load, flight: flight.id, deadline: flight.deadline, at: now)
    }

    /// Saves a loaded token before anybody gets it; callers that come meanwhile wait for that.
    mutating func save(_ token: AccessToken, of flight: Flight, isCurrent: Bool, at now: Duration) {
        guard !storage.isLate else {
            enqueue(.save(token, start: flight.start), at: now)
            return accept(token, of: flight, isCurrent: isCurrent, at: now)
        }
        var flight = flight
        hold(token, as: &flight, isGiven: false, at: now)
        if isCurrent {
            state = state.servable.map { .refreshing($0, flight) } ?? .loading(flight)
        } else {
            abandoned.append(flight)
        }
        enqueue(.save(token, start: flight.start), flight: flight.id, at: now)
    }

    /// A token is in hand and is about to be saved: from now on it is younger than what an older load may bring.
    mutating func hold(_ token: AccessToken, as flight: inout Flight, isGiven: Bool, at now: Duration) {
        publications += 1
        flight.publications = publications
        flight.phase = .saving(token, isGiven: isGiven)
        // The load has ended in time; the save has a limit of its own.
        flight.deadline = now + RefreshPolicy.storeTimeout
    }

    /// Puts an operation behind the earlier ones; nothing waits for it if the store is late.
    mutating func enqueue(
        _ kind: StoreQueue.Kind, flight: Int? = nil, fence: Int? = nil, handsOver: Bool = false, deadline: Duration? = nil,
        at now: Duration
    ) {
        let dropped = storage.add(
            kind, generation: generation, deadline: deadline ?? now + RefreshPolicy.storeTimeout, flight: flight,
            fence: storage.isLate ? nil : fence, handsOver: handsOver)
        if storage.isLate {
            announce(.storeFailed, error: .storeIsLate)
            if let fence { add(.endFences([fence], found: nil, .storeIsLate)) }
        }
        for operation in dropped { _ = operation.flight.flatMap { end($0) } }
        if storage.operations.count == 1 { add(.perform(storage.operations[0])) }
    }

    /// The operation that ran has ended, in time or late.
    ///
    /// - Parameters:
    ///   - found: What a load, or an operation that hands over what was there, found.
    ///   - error: Why it failed.
    mutating func storeEnded(found: Found?, error: TokenServiceError?, at now: Duration) {
        expireToken(at: now)
        defer { elapse(to: now) }
        guard let operation = storage.removeFirst() else { return }
        let unknown = found.flatMap { found in stored.contains { $0.isSameGrant(as: found.token) } ? nil : found.token }
        noteStored(found, error: error, by: operation)
        if let next = storage.begin(at: now) { add(.perform(next)) }
        switch operation.kind {
        case .load: restored(found, error: error, by: operation, at: now)
        case .save:
            if let flight = operation.flight {
                saved(by: flight, error: error, at: now)
            } else if let error, operation.generation == generation {
                announce(.storeFailed, error: error)
            }
        case .remove:
            if let error { announce(.storeFailed, generation: operation.generation, error: error) }
        }
        guard operation.handsOver else { return endFences(operation.fences, found: nil, error: error) }
        // What the service knows it has handed over, or used up.
        let handedOver = unknown.flatMap { discard($0, operation.isRemoval ? .signedOut : .replaced) }
        endFences(operation.fences, found: handedOver, error: error)
    }

    private mutating func noteStored(_ found: Found?, error: TokenServiceError?, by operation: StoreQueue.Operation) {
        if operation.handsOver, let found { stored = [found.token] }
        switch operation.kind {
        case .load: break
        // Bounded for a store that always fails: what it really has comes first.
        case .save(let token, _):
            stored = error == nil ? [token] : stored.prefix(1) + stored.dropFirst().suffix(6) + [token]
        case .remove: if error == nil { stored = [] }
        }
    }

    /// Compares the limits of the store's operations with the time.
    mutating func timeOutStore(at now: Duration) {
        for operation in storage.elapse(to: now) {
            switch operation.kind {
            case .load: timeOutRestore(operation.flight, at: now)
            case .save:
                if let flight = operation.flight {
                    saved(by: flight, error: .storeIsLate, at: now)
                } else if operation.generation == generation {
                    announce(.storeFailed, error: .storeIsLate)
                }
            case .remove: announce(.storeFailed, generation: operation.generation, error: .storeIsLate)
            }
            endFences(operation.fences, found: nil, error: .storeIsLate)
        }
    }

    private mutating func endFences(_ fences: [Int], found: AccessToken?, error: TokenServiceError?) {
        if !fences.isEmpty { add(.endFences(fences, found: found, error)) }
    }

    /// The store is silent; what it says later is welcome.
    private mutating func timeOutRestore(_ id: Int?, at now: Duration) {
        guard let flight = state.flight, flight.id == id else { return }
        state.endFlight()
        abandoned.append(flight)
        fail(.storeIsLate, of: flight, retryAfter: nil, at: now)
    }

    /// The store answered; without a token and an error it is empty.
    private mutating func restored(
        _ found: Found?, error: TokenServiceError?, by operation: StoreQueue.Operation, at now: Duration
    ) {
        guard let id = operation.flight, let (flight, isCurrent) = end(id) else { return }
        // It may be locked, which is not the same as empty, so no loader is called.
        if let error {
            if isCurrent { fail(error, of: flight, retryAfter: nil, at: now) }
            return
        }
        isRestorePending = false
        if let found {
            grant = found.token
            stored = [found.token]
            let lifetime = found.token.lifetime ?? .zero
            // The wall clock may have been moved: the token is never older than its life, nor younger than new.
            let start = now - min(max(found.age, .zero), max(lifetime, .zero))
            let servable = Servable(found.token, from: start, at: now, policy: policy, jitter: jitter())
            let isGood = servable.expiry.map { now < $0 } ?? true
            if isGood, !found.token.isUnusable, !rejections.contains(found.token, at: now) {
                publications += 1
                // After failed attempts the pause is over, since there is a token.
                backOff = BackOff()
                state.install(servable)
                announce(.restored, flight)
                return answerWaiters(.success(found.token))
            }
        }
        guard isCurrent, isAwaited else { return }
        // The computer slept meanwhile: a load would be late before it began.
        guard now < flight.limit else { return fail(.storeIsLate, of: flight, retryAfter: nil, at: now) }
        // Nothing has come into a load's way since the restore began: what does, ends it.
        state = .loading(startLoad(of: flight, .loadStarted, at: now))
    }

    /// A save ended, or took too long, which is an event and not the callers' failure.
    private mutating func saved(by id: Int, error: TokenServiceError?, at now: Duration) {
        guard let (flight, isCurrent) = remove(id), case .saving(let token, let isGiven) = flight.phase else { return }
        guard isCurrent || flight.publications == publications else { return }
        if let error { announce(.storeFailed, flight, error: error) }
        accept(token, of: flight, isCurrent: isCurrent, isGiven: isGiven, at: now)
    }
}

extension TokenService.StateMachine.Flight {
    var isLoading: Bool {
        if case .loading = phase { true } else { false }
    }

    /// The token that is being saved.
    var savedToken: AccessToken? {
        if case .saving(let token, _) = phase { token } else { nil }
    }
}

extension StoreQueue.Operation {
    var isRemoval: Bool {
        if case .remove = kind { true } else { false }
    }
}

extension AccessToken {
    /// Whether no request can carry it: it is a grant only.
    var isUnusable: Bool { value.isEmpty }

    /// Whether to revoke the one is to revoke the other.
    func isSameGrant(as other: AccessToken) -> Bool {
        refreshToken == other.refreshToken && (refreshToken != nil || value == other.value)
    }
}
