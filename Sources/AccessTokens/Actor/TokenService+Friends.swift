package import TokenServiceConcurrency

/// Everything that the callback shim may use besides the public API, ``Alarms`` and ``LimitHeap``.
///
/// The shim enters the actor by itself, once per batch of calls. So the calls that users await have isolated versions here, which
/// have taken effect when they return. The rest can be called from any thread.
extension TokenService {
    // MARK: Calls

    /// The number of the token to hand out, if nothing else is due, for callers who may have that token already.
    ///
    /// Copies nothing that threads share: two threads that count references to one token cost each other more than everything
    /// else.
    package nonisolated func publicationIfNothingDue() -> Int? {
        let (publication, nothingDueUntil) = lobby.withLock { ($0.snapshot.hit.publication, $0.snapshot.hit.nothingDueUntil) }
        return clock.now() < nothingDueUntil ? publication : nil
    }

    /// The same as ``lookUp()``, with the token's number.
    package nonisolated func lookUpWithNumber() -> (token: AccessToken?, generation: Int, publication: Int?) {
        let (seen, nothingDueUntil) = lobby.withLock {
            (($0.snapshot.hit.token, $0.snapshot.hit.generation, $0.snapshot.hit.publication), $0.snapshot.hit.nothingDueUntil)
        }
        return seen.0 == nil || clock.now() < nothingDueUntil ? seen : lookUpAndRefresh()
    }

    /// Joins the load for a batch of callbacks; `answer` is called once, on the actor, and must only pass the result on.
    package func join(
        callers: Int, seen generation: Int, urgency: Urgency = .current,
        then answer: @escaping @Sendable (Result<AccessToken, any Error>) -> Void
    ) {
        let result: Result<AccessToken, TokenServiceError>? = step { machine, now in
            machine.retrieve(callers: callers, seen: generation, at: now)
        } admission: { result, lobby in
            if result == nil { lobby.admit(.callback(answer), urgency: urgency) }
            return result
        }
        guard let result else { return raiseUrgency(to: urgency) }
        answer(result.mapError { dated($0, at: clock.now()) as any Error })
    }

    /// The same for a callback whose request was refused.
    package func join(
        insteadOf refused: AccessToken, then answer: @escaping @Sendable (Result<AccessToken, any Error>) -> Void
    ) {
        guard let seen = step({ $0.retrieve(insteadOf: refused, at: $1) }) else {
            return answer(.failure(TokenServiceError(.reset)))
        }
        join(callers: 1, seen: seen.generation, then: answer)
    }

    /// Notes a callback's wait; returns what to call when it is answered, or `nil` if the current task is part of no load.
    package nonisolated func beginWaitingForCallback() throws -> (@Sendable () -> Void)? {
        guard let membership = try beginWaiting() else { return nil }
        return { self.endWaiting(membership) }
    }

    // MARK: Operations

    /// The isolated version of ``invalidate(_:)``.
    package func refuse(_ rejected: AccessToken) {
        step { $0.invalidate(rejected, at: $1) }
    }

    /// The isolated version of ``replace(with:)``.
    package func put(_ token: AccessToken) -> Fence {
        noteFence(token)
        guard let lender = ties?.lender else { return fence { $0.replace(with: token, at: $1) } }
        // The grant first: a load that this fence starts must not use the old one.
        let (isSignedOut, lent) = lender.signIn(token)
        return fence(lent) { machine, now in
            let dropped = isSignedOut ? machine.reset(at: now) : nil
            return machine.replace(with: token.with(refreshToken: nil), at: now) ?? dropped
        }
    }

    /// The isolated version of ``reset()``.
    package func signOut() -> Fence {
        noteFence(nil)
        return fence(ties?.lender?.signOut()) { $0.reset(at: $1) }
    }

    /// The isolated version of ``retryNow()``.
    package func endPauses() {
        ties?.session?.noteRetry()
        ties?.lender?.retry()
        step { $0.retryNow(at: $1) }
    }

    /// The grant that several keys use has been replaced through another key.
    package nonisolated func lentGrantReplaced() async {
        await visit { service in service.step { $0.lentGrantReplaced(at: $1) } }
    }

    /// A fence that has taken effect in the service; the store's part may still be under way.
    package struct Fence: Sendable {
        let discarded: AccessToken?
        let end: SingleResult<SessionChange>?
        /// The same for the grant that other services use, too.
        let lent: SingleResult<SessionChange>?
    }

    /// Waits for the store's part; to be called once for each fence.
    package nonisolated func end(of fence: Fence) async -> SessionChange {
        var discarded: [AccessToken] = [], storeFailure: TokenServiceError?
        if let token = fence.discarded { discarded.append(token) }
        for end in [fence.end, fence.lent] {
            guard let change = try? await end?.value() else { continue }
            discarded += change.discarded
            storeFailure = storeFailure ?? change.storeFailure
        }
        return SessionChange(discarded: discarded, storeFailure: storeFailure)
    }

    // MARK: Time

    /// How many fences there have been.
    package var generation: Int { machine.generation }

    /// The time on the service's clock.
    package nonisolated var now: Duration { clock.now() }

    /// Sets the alarm of the shim's own calls, on the service's clock.
    package nonisolated func set(_ alarms: borrowing Alarms, to time: Duration, _ ring: @escaping Sleeper.Ring) {
        alarms.wake(at: time, on: clock, executor: executor, ring)
    }
}
