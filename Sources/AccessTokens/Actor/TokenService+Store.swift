import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension TokenService {
    /// The outcome of one operation of the store.
    private typealias Outcome = (found: StoredToken?, error: (any Error)?, tookEffect: Bool)

    /// Runs an operation of the store in a task that is never cancelled; the machine lets one run at a time.
    ///
    /// - Parameter urgency: The urgency of the waiters. An operation that a flight waits for is made more urgent when a more
    ///   urgent caller joins.
    func performOperation(_ operation: GrantKeeper.Operation, urgency: Urgency, at now: Duration) {
        guard let store = ties?.store else { return }
        let membership = membership(of: operation)
        let stored: StoredToken? =
            if case .save(let token, let start) = operation.kind { stored(token, from: start, at: now) } else { nil }
        let task = Task.detached(on: storeStart, priority: urgency.priority) { [loadExecutor] in
            let outcome = await LoadMembership.$current.withValue(membership) {
                await withTaskExecutorPreference(loadExecutor) { await Self.run(operation, stored, in: store) }
            }
            await self.endOperation(operation, with: outcome)
        }
        storing = task
        if let flight = operation.flight, flight == machine.state.flightID {
            begin(RunningLoad(flight: flight, task: task, urgency: urgency))
        }
    }

    @concurrent private static func run(
        _ operation: GrantKeeper.Operation, _ stored: StoredToken?, in store: any TokenStore
    ) async -> Outcome {
        // If the token can't be read, it can't be revoked; it is removed or overwritten anyway.
        var found: StoredToken?
        var unread: (any Error)?
        if operation.handsOver {
            do { found = try await store.load() } catch { unread = error }
        }
        do {
            switch operation.kind {
            case .load: return (try await store.load(), nil, true)
            case .save:
                if let stored { try await store.save(stored) }
            case .remove:
                try await store.remove()
                // The token was removed, but report the failed read: there may have been a grant to revoke.
                return (found, unread, true)
            }
            // The save has succeeded, even if the token before it couldn't be read: a sign-in replaces a damaged file.
            return (found, nil, true)
        } catch {
            return (found, error, (error as? any StoreFailure)?.tookEffect ?? false)
        }
    }

    private func endOperation(_ operation: GrantKeeper.Operation, with outcome: Outcome) {
        if let flight = operation.flight { forgetLoad(of: flight) }
        // One that counted as lost may end beside the next.
        if operation.id == machine.keeper.operations.first?.id { storing = nil }
        var failure = outcome.error.map { error in
            var failure = FlightFailure(wrapping: error, as: .storeFailed)
            failure.retryAfter = failure.retryAfter.map { min($0, RefreshPolicy.longestPause) }
            failure.tookEffect = outcome.tookEffect
            return failure
        }
        var found: Machine.Found?
        if let stored = outcome.found {
            let age = wallTime?.timeIntervalSince(stored.received)
            if case .load = operation.kind, age?.isFinite == false {
                // Not transient: the store would return the same token again.
                failure = FlightFailure(error: TokenServiceError(.storeFailed, underlying: UnusableDate(), remedy: .signIn))
            }
            found = (stored.token.usable(with: loader.keyThumbprint), Self.bounded(age))
        }
        step { [ties, found, failure] in
            // Asked only now, after the fences that come first.
            let end = ties?.session?.takeEnd()
            var givenUp: [AccessToken] = []
            for grant in ties?.session?.takeDisplaced() ?? [] { if let token = $0.displaced(grant) { givenUp.append(token) } }
            if let end { $0.sharedSessionEnded(end) }
            $0.storeEnded(operation, found: found, givenUp: givenUp, failure, at: $1)
        }
    }

    /// Clamps an age: an extreme date must not overflow a duration, and a token of unknown age counts as older than any.
    private static func bounded(_ age: TimeInterval?) -> Duration {
        guard let age, age.isFinite else { return RefreshPolicy.longestLifetime }
        return .seconds(min(max(age, 0), RefreshPolicy.longestLifetime / .seconds(1)))
    }

    /// The value to save: the token and, on the wall clock, the moment from which its lifetime counts.
    private func stored(_ token: AccessToken, from start: Duration, at now: Duration) -> StoredToken {
        StoredToken(token, received: wallTime?.addingTimeInterval((start - now) / .seconds(1)) ?? .distantPast)
    }

    /// Prepares for the sign-ins and sign-outs that the machine is about to learn of; returns the highest urgency with which the
    /// store is waited for.
    func expect(_ notices: [Notice], at now: Duration) -> Urgency? {
        var highest: Urgency?
        for notice in notices {
            guard let fence = notice.fence else { continue }
            if let session = ties?.session {
                session.noteFence(notice.act.token.map { stored($0, from: notice.time, at: now) }, number: notice.number)
            }
            fences.append((notice.number, fence.end, []))
            highest = max(highest ?? fence.urgency, fence.urgency)
        }
        if let highest { storing?.raise(to: highest, on: executor) }
        return highest
    }

    /// Keeps the token that a fence gave up, for the fence's caller.
    func note(_ token: AccessToken?, givenUpBy number: Int) {
        guard let token, let index = fences.firstIndex(where: { $0.number == number }) else { return }
        fences[index].discarded.append(token)
    }

    /// Ends these fences: the store has finished, failed or timed out, or there is none.
    func endFences(_ numbers: [Int], givenUp: [AccessToken], error: TokenServiceError?) {
        let ended = fences.filter { numbers.contains($0.number) }
        fences.removeAll { numbers.contains($0.number) }
        for fence in ended {
            let change = SessionChange(discarded: fence.discarded + givenUp, storeFailure: error)
            fence.end.complete(with: .success(change))
        }
    }

    /// The wall clock's time; `nil` if it isn't a finite number.
    var wallTime: Date? {
        let time = wallClock()
        return time.timeIntervalSinceReferenceDate.isFinite ? time : nil
    }
}

/// An operation of the store took too long.
package struct StoreTimeout: Error, CustomStringConvertible {
    package let limit: Duration
    package var description: String {
        "The store did not answer within \(limit.shown). Check that it can be reached, and isn't locked."
    }

    package init(after limit: Duration = RefreshPolicy.storeTimeout) {
        self.limit = limit
    }
}

/// A store returned a token whose ``StoredToken/received`` is not a finite number.
struct UnusableDate: Error, CustomStringConvertible {
    let description = "The stored token's date is not a number: the store is damaged. Sign in again with replace(with:)."
}

extension TokenServiceError {
    /// The error that callers and events get when the store has taken too long.
    package static let storeIsLate = storeIsLate(after: RefreshPolicy.storeTimeout)

    /// The same for a restore, whose limit may be shorter.
    static func storeIsLate(after limit: Duration) -> TokenServiceError {
        TokenServiceError(.storeFailed, underlying: StoreTimeout(after: limit))
    }
}
