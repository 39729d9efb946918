#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension TokenService {
    /// Queues an operation of the store behind the earlier ones, in a task that nobody cancels.
    ///
    /// - Parameter whenLate: Called if the operation has not ended after its time limit; it goes on, and blocks those behind.
    private func enqueue(
        _ operation: @escaping @Sendable (any TokenStore) async -> Void, whenLate: @escaping @Sendable () async -> Void
    ) {
        guard let store else { return }
        let before = lastStoreOperation
        let deadline = clock.now() + RefreshPolicy.storeTimeout
        let timer = Task.detached(executorPreference: executor) { [clock] in
            guard await clock.hasPassed(deadline) else { return }
            await whenLate()
        }
        lastStoreOperation = Task.detached(executorPreference: executor) {
            await before?.value
            await operation(store)
            timer.cancel()
        }
    }

    /// Asks the store for an earlier run's token; the flight's own limit says when nobody waits any longer.
    func restore(_ flight: Machine.Flight) {
        startTimer(for: flight)
        enqueue { store in
            let result = await Result { try await store.load() }
            await self.finishRestore(flight.id, with: result)
        } whenLate: {
            // Nothing: a restore's callers wait as long as a load's.
        }
    }

    private func finishRestore(_ flight: Int, with result: Result<StoredToken?, any Error>) {
        timers.removeValue(forKey: flight)?.cancel()
        switch result {
        case .success(let stored):
            let found = stored.map { stored in
                let seconds = wallClock().timeIntervalSince(stored.received)
                // A date from far away must not overflow a duration; what is older than any token is old enough.
                let bounded = min(max(seconds, 0), RefreshPolicy.longestLifetime / .seconds(1))
                return (stored.token, Duration.seconds(bounded))
            }
            step { $0.restored(found, by: flight, at: $1) }
        case .failure(let error):
            step { $0.restoreFailed(TokenServiceError(.storeFailed, underlying: error), by: flight, at: $1) }
        }
    }

    func save(_ token: AccessToken, start: Duration, flight: Int?, at now: Duration) {
        let stored = StoredToken(token, received: wallClock().addingTimeInterval((start - now) / .seconds(1)))
        let end = FirstAnswer<Void>()
        lastSave = end
        let generation = machine.generation
        enqueue { store in
            // The fence is checked again: what was signed out while it waited must not be written any more.
            let isFenced = await self.generation != generation
            let result = isFenced ? .success(()) : await Result { try await store.save(stored) }
            await self.finishSave(flight, with: result)
            end.give(.success(()))
        } whenLate: {
            await self.finishSave(flight, with: .failure(StoreTimeout()))
            end.give(.success(()))
        }
    }

    private func finishSave(_ flight: Int?, with result: Result<Void, any Error>) {
        var failure: TokenServiceError?
        if case .failure(let error) = result { failure = TokenServiceError(.storeFailed, underlying: error) }
        if let flight {
            step { [failure] in $0.saved(by: flight, error: failure, at: $1) }
        } else if let failure {
            step { machine, _ in machine.announce(.storeFailed, error: failure) }
        }
    }

    /// Removes the token after everything queued before; `removal` tells when and how that ended.
    func remove() {
        let answer = FirstAnswer<Void>()
        removal = answer
        enqueue { store in
            answer.give(await Result { try await store.remove() })
        } whenLate: {
            answer.give(.failure(StoreTimeout()))
        }
    }

    /// Waits for the removal that a reset queued; to be called once for each.
    ///
    /// An error has what was dropped, so that it can be revoked all the same.
    package func finish(_ fence: Fence) async throws -> AccessToken? {
        do { try await fence.removal?.value() } catch {
            var failure = TokenServiceError(.storeFailed, underlying: error)
            failure.dropped = fence.dropped
            step { [failure] machine, _ in machine.announce(.storeFailed, error: failure) }
            throw failure
        }
        return fence.dropped
    }
}

/// An operation of the store took too long.
struct StoreTimeout: Error, CustomStringConvertible {
    let description = "The store did not answer within \(RefreshPolicy.storeTimeout)."
}
