package import TokenServiceConcurrency

/// The interface of the callback shim and of `DataLoading` besides the public API; the shim also uses the isolated calls in
/// `TokenService+Session`, ``Alarms`` and ``LimitHeap``.
///
/// The shim enters the actor itself, once per batch of calls. Members that aren't isolated can be called from any thread.
extension TokenService {
    // MARK: Calls

    /// The number of the current token if nothing else is due, for callers that may already have a copy of it.
    ///
    /// Copies no shared reference: contention for one token's reference count costs more than everything else.
    package nonisolated func publicationIfNothingDue() -> Int? {
        let (publication, nothingDueUntil) = lobby.withLock { ($0.snapshot.hit.publication, $0.snapshot.hit.nothingDueUntil) }
        return clock.now() < nothingDueUntil ? publication : nil
    }

    /// The generation of a call that begins now and asks for its token later.
    package nonisolated var currentGeneration: Int { lobby.withLock { $0.snapshot.hit.generation } }

    /// Whether no sign-out has come since a generation.
    package nonisolated(nonsending) func isSignedIn(since generation: Int) async -> Bool {
        await visit {
            $0.settle()
            return $0.machine.session.lastReset <= generation
        }
    }

    /// Returns a token to a call that began in an earlier generation, unless a sign-out has come since.
    package nonisolated(nonsending) func retrieveToken(
        seen generation: Int, within limit: Duration? = nil
    ) async throws -> AccessToken {
        let found = look()
        // After a replacement the actor knows whether there was a sign-out.
        if let token = found.token, found.generation == generation { return token }
        return try await join(seen: generation, until: deadline(after: limit))
    }

    /// The place of a batch of callbacks among the waiters, with which it can leave.
    package struct CallbackPlace: Sendable {
        fileprivate let place: Place
    }

    /// Joins the load for a batch of callbacks; `answer` is called once, and must only pass the result on.
    ///
    /// - Returns: Its place, if it waits: then `answer` isn't called if the batch leaves before.
    @discardableResult
    package func joinCallbacks(
        callers: Int, seen generation: Int, urgency: Urgency = .current,
        then answer: @escaping @Sendable (Result<AccessToken, any Error>) -> Void
    ) -> CallbackPlace? {
        let (result, place): (Result<AccessToken, TokenServiceError>?, Place?) = step { machine, now in
            machine.retrieve(callers: callers, seen: generation, at: now)
        } admission: { result, lobby in
            (result, result == nil ? lobby.admit(.callback(answer), urgency: urgency) : nil)
        }
        if let place {
            raiseUrgency(to: urgency)
            return CallbackPlace(place: place)
        }
        if let result { answer(result.mapError { dated($0, at: clock.now()) as any Error }) }
        return nil
    }

    /// The same for a callback whose request was refused.
    ///
    /// - Parameter isRestored: Whether the store has been asked whose request it is.
    @discardableResult
    package func joinCallbacks(
        insteadOf refused: AccessToken, isRestored: Bool = false,
        then answer: @escaping @Sendable (Result<AccessToken, any Error>) -> Void
    ) -> CallbackPlace? {
        switch resending(insteadOf: refused) {
        case .with(let token): answer(.success(token))
        case .refusedTwice(let error): answer(.failure(error))
        case .wait(let generation): return joinCallbacks(callers: 1, seen: generation, then: answer)
        case .afterRestore(let generation) where !isRestored:
            return joinCallbacks(callers: 1, seen: generation) { result in
                guard case .success = result else { return answer(result) }
                Task.detached(on: self.executor) { await self.joinCallbacks(insteadOf: refused, isRestored: true, then: answer) }
            }
        case .afterRestore, .tooLate: answer(.failure(TokenServiceError.refusedElsewhere))
        }
        return nil
    }

    /// Removes a batch of callbacks from the waiters; returns `false` if it has its answer already.
    package nonisolated func leave(_ batch: CallbackPlace) -> Bool {
        // Released after unlocking, as its captures may be the last references to foreign objects.
        lobby.withLock { $0.remove(batch.place) } != nil
    }

    /// What to do with a refused request.
    func resending(insteadOf refused: AccessToken) -> Machine.Resending {
        let resending = step { $0.retrieve(insteadOf: refused, at: $1) }
        guard case .refusedTwice(let error) = resending else { return resending }
        return .refusedTwice(dated(error, at: clock.now()))
    }

    /// Notes that a server refused a request that isn't sent again.
    ///
    /// - Throws: The error with the time of the next load, if the request was a retry with a token that was handed out once more.
    package nonisolated(nonsending) func noteRefusal(of token: AccessToken) async throws {
        try await visit { service in
            // A token that the service didn't hand out is remembered, too.
            service.step { $0.invalidate(token, at: $1) }
            if case .refusedTwice(let error) = service.resending(insteadOf: token) { throw error }
        }
    }

    /// Notes a callback's wait; returns what to call when it is answered, or `nil` if the current task isn't part of a load.
    package nonisolated func beginWaitingForCallback() throws -> (@Sendable () -> Void)? {
        guard let membership = try beginWaiting() else { return nil }
        return { self.endWaiting(membership) }
    }

    // MARK: Time

    /// The time on the service's clock.
    package nonisolated var now: Duration { clock.now() }

    /// Sets the alarm for the limits of the shim's calls, on the service's clock.
    package nonisolated func set(_ alarms: borrowing Alarms, to time: Duration, _ ring: @escaping Sleeper.Ring) {
        alarms.wake(at: time, on: clock, executor: executor, ring)
    }
}

extension TokenService {
    /// Installs a token of the same principal with more scopes.
    ///
    /// Gives it up instead if the session has ended, or meanwhile has a token with other scopes.
    ///
    /// - Parameters:
    ///   - token: The token.
    ///   - generation: The generation in which it was asked for.
    ///   - isWider: Whether it has all scopes of the service's current token or, without one, of the last token, whose grant it
    ///     would replace; called on the actor.
    /// - Returns: The generation that began with the token; `nil` if it wasn't installed, or if the session ended while it was
    ///   being saved.
    package nonisolated func widen(
        to token: AccessToken, seen generation: Int, isWider: @Sendable (AccessToken?) -> Bool
    ) async -> Int? {
        let installed = await visit { service -> (fence: Fence, generation: Int)? in
            while true {
                service.settle()
                let machine = service.machine
                let isSignedIn = machine.session.lastReset <= generation
                guard isSignedIn, isWider(machine.state.token ?? machine.keeper.grant.token) else {
                    service.handOver([DiscardedGrant(token: token, reason: isSignedIn ? .replaced : .signedOut)])
                    return nil
                }
                // The program may have signed in or out on another thread since.
                guard let fence = service.fence(.signIn(token), in: machine.session.generation) else { continue }
                service.settle()
                return (fence, service.machine.session.generation)
            }
        }
        guard let (fence, begun) = installed else { return nil }
        _ = await end(of: fence)
        // The user may have signed out while the token was being saved.
        return await isSignedIn(since: generation) ? begun : nil
    }
}
