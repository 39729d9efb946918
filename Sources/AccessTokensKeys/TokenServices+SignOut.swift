public import AccessTokens
import TokenServiceConcurrency

/// What ``TokenServices/reset(where:)`` did, beside its effect on the services, which is certain.
public struct SessionChanges<Key: Hashable & Sendable>: Sendable {
    /// What each key's service and store gave up, to be revoked, and whether the store has done its part.
    public let changes: [Key: SessionChange]

    /// Why stored tokens may be left of keys that had no service; `nil`: there are none.
    ///
    /// The stores did not say in time which keys they have. Call ``TokenServices/reset(where:)`` again.
    public let storeFailure: TokenServiceError?
}

extension TokenServices {
    /// Signs out all keys of an account, or whatever else the keys have in common.
    ///
    /// Which services there are is decided in one step, those included that are being made at this moment; then each is fenced off as
    /// by `TokenService.reset()`, all at once. The stores are asked which other keys they have a token of; those are signed out, too.
    /// A call that starts after this has returned sees nothing of these keys from before. One that runs at the same time may find one
    /// key signed out and another not yet.
    ///
    /// A store that hangs delays this call by 5 s, a slow list of the stored keys by 5 s more, and neither any other key's fence. A
    /// sign-in that begins after that step, for a key that had no service, stays. The caller's cancellation cuts nothing short.
    ///
    /// For keys that share a refresh token, mean the key that keeps it, too.
    ///
    /// - Parameter isMeant: Whether a key is to be signed out; called on any thread, for the keys in memory and then for those in the
    ///   stores.
    /// - Returns: What was given up for each key, also if that is nothing, and whether the stores have done their part.
    public func reset(where isMeant: @escaping @Sendable (Key) -> Bool) async -> SessionChanges<Key> {
        await Task.detached(executorPreference: executor, priority: Task.currentPriority) { [self] in
            let keys = hold().filter(isMeant)
            defer { release() }
            async let first = signOut(keys) { await $0.reset() }
            let stored = await storedKeys()
            let others = Set((try? stored.get()) ?? []).subtracting(keys).filter(isMeant)
            let second = await signOut(others) { await $0.resetUnlessFenced() }
            var changes = await first.merging(second) { first, _ in first }
            // Service A was made after the first step, and its load had its turn before the grant was fenced off.
            let late: Set = grant == nil ? [] : registry.withTable { $0.current }.keys.subtracting(changes.keys).filter(isMeant)
            changes.merge(await signOut(late) { await $0.dropUnlessFenced() }) { first, _ in first }
            return SessionChanges(changes: changes, storeFailure: stored.failure)
        }.value
    }

    private var executor: (any TaskExecutor)? { environment.ownExecutor }

    private func hold() -> Set<Key> {
        registry.withTable { $0.hold() }.keys.union(grants.withTable { $0.hold() }.keys)
    }

    private func release() {
        _ = registry.withTable { $0.release() }
        _ = grants.withTable { $0.release() }
    }

    private func signOut(
        _ keys: Set<Key>, _ reset: @escaping @Sendable (TokenService) async -> SessionChange?
    ) async -> [Key: SessionChange] {
        await withTaskGroup(of: (Key, SessionChange?).self) { group in
            for key in keys { group.addTask { (key, await reset(self[key])) } }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    /// The keys that the stores have, if they say so in time.
    private func storedKeys() async -> Result<[Key], TokenServiceError> {
        let (stores, sharing) = (stores, sharing)
        guard stores != nil || sharing != nil else { return .success([]) }
        let answer = SingleResult<[Key]>()
        let clock = registry.clock, alarms = Alarms()
        alarms.wake(at: clock.now() + RefreshPolicy.storeTimeout, on: clock, executor: executor) { _ in
            answer.complete(with: .failure(TokenServiceError.storeIsLate))
        }
        defer { alarms.wakeNoMore() }
        Task.detached(on: executor) { [loadExecutor = environment.loadExecutor] in
            answer.complete(
                with: await Result {
                    try await withTaskExecutorPreference(loadExecutor) {
                        try await (stores?.storedKeys() ?? []) + (sharing?.storedKeys() ?? [])
                    }
                })
        }
        do {
            return .success(try await answer.value())
        } catch {
            return .failure(error as? TokenServiceError ?? TokenServiceError(.storeFailed, underlying: error))
        }
    }
}
