import TokenServiceConcurrency

/// All that the callback shim may use beside what is public, with ``Alarms`` and ``LimitHeap``.
///
/// The shim comes in to the actor by itself, once for many calls: what users await has an isolated form here, which has taken
/// effect when it returns. The rest answers on any thread.
extension TokenService {
    // MARK: Calls

    /// The number of the token to hand out, if there is nothing else to do, for those who may have that token already.
    ///
    /// It copies nothing that threads share: two that count references to one token cost each other more than all the rest.
    package nonisolated func publicationIfNothingDue() -> Int? {
        let (publication, nothingDueUntil) = lobby.withLock { ($0.snapshot.publication, $0.snapshot.nothingDueUntil) }
        return clock.now() < nothingDueUntil ? publication : nil
    }

    /// The same as ``lookUp()``, with the token's number.
    package nonisolated func lookUpWithNumber() -> (token: AccessToken?, generation: Int, publication: Int?) {
        let (seen, nothingDueUntil) = lobby.withLock {
            (($0.snapshot.token, $0.snapshot.generation, $0.snapshot.publication), $0.snapshot.nothingDueUntil)
        }
        return seen.0 != nil && clock.now() < nothingDueUntil ? seen : lookUpAndRefresh()
    }

    /// Joins the load for a batch of callbacks; `answer` is called once, on the actor, and must only pass the result on.
    package func join(
        callers: Int, seen generation: Int, priority: TaskPriority? = nil,
        then answer: @escaping @Sendable (Result<AccessToken, any Error>) -> Void
    ) {
        let priority = priority ?? Task.currentPriority
        let result: Result<AccessToken, TokenServiceError>? = step { machine, now in
            machine.retrieve(callers: callers, seen: generation, at: now)
        } admission: { result, lobby in
            if result == nil { lobby.admit(.callback(answer), priority: priority) }
            return result
        }
        guard let result else { return raisePriority(to: priority) }
        answer(result.mapError { dated($0, at: clock.now()) as any Error })
    }

    /// The same for a callback; returns what to call when it is answered, or `nil` if the current task is part of no load.
    package nonisolated func beginWaitingForCallback() throws -> (@Sendable () -> Void)? {
        guard let membership = LoadMembership.current else { return nil }
        try beginWaiting()
        let target = ObjectIdentifier(self)
        return { LoadMembership.waits.withLock { $0.end(membership, waitingFor: target) } }
    }

    // MARK: Operations

    /// The invalidation itself.
    package func refuse(_ rejected: AccessToken) {
        step { $0.invalidate(rejected, at: $1) }
    }

    /// The replacement itself.
    package func put(_ token: AccessToken) -> Fence {
        noteFence(token)
        guard let lender else { return fence { $0.replace(with: token, at: $1) } }
        // First the grant: a load that this fence starts must not use the old one.
        let lent = lender.signIn(token)
        return fence(lent) { $0.replace(with: token.with(refreshToken: nil), at: $1) }
    }

    /// The reset itself.
    package func signOut() -> Fence {
        noteFence(nil)
        return fence(lender?.signOut()) { $0.reset(at: $1) }
    }

    /// The end of every pause.
    package func endPauses() {
        session?.noteRetry()
        step { $0.retryNow(at: $1) }
    }

    /// A fence that has taken effect, but for the store's part.
    package struct Fence: Sendable {
        let discarded: AccessToken?
        let end: SingleResult<SessionChange>?
        /// The part of the grant that other services use, too.
        let lent: SingleResult<SessionChange>?
    }

    /// Waits for the store's part; to be called once for each fence.
    package nonisolated func end(of fence: Fence) async -> SessionChange {
        var discarded = [fence.discarded].compactMap { $0 }
        let changes = [try? await fence.end?.value(), try? await fence.lent?.value()].compactMap { $0 }
        for change in changes { discarded += change.discarded }
        return SessionChange(discarded: discarded, storeFailure: changes.lazy.compactMap(\.storeFailure).first)
    }

    // MARK: Time

    /// How many fences there have been.
    package var generation: Int { machine.generation }

    /// The time on the service's clock.
    package nonisolated var now: Duration { clock.now() }

    /// Alarms on the service's clock, for the limits of the shim's own calls.
    package nonisolated func makeAlarms() -> Alarms {
        Alarms(clock: clock, executor: executor)
    }
}
