public import AccessTokens
import TokenServiceConcurrency

/// The result of ``TokenServices/reset(where:)``: for each key the tokens given up, and whether the stores failed.
public struct SessionChanges<Key: Hashable & Sendable>: Sendable {
    /// For each key the tokens that its service and store gave up, to be revoked, and whether the store has removed its token.
    public let changes: [Key: SessionChange]

    /// Why stored keys that had no service may have been missed; `nil`: none was.
    ///
    /// The stores didn't name all their keys, or there was no progress for 5 s. ``changes`` has the keys whose sign-out had begun
    /// before that. Call ``TokenServices/reset(where:)`` again.
    public let storeFailure: TokenServiceError?
}

extension TokenServices {
    /// Signs out all keys of an account, or of anything else that keys have in common.
    ///
    /// One step decides which services are affected, including those that are being created at this moment; then each is fenced
    /// off as by `TokenService.reset()`, all at once. The stores name the other keys that have a token; those are signed out,
    /// too. A call that starts after this has returned sees nothing of these keys from before. A call that runs at the same time
    /// may find one key signed out and another not yet.
    ///
    /// A store that hangs delays this call by 5 s, and no other key's fence. Stored keys without services are signed out while
    /// the stores name them, 16 at a time, however long that takes. The call ends early only if for 5 s no key is named and no
    /// store finishes its part of a sign-out. A sign-in that begins after that first step, for a key that had no service, stays.
    /// Cancelling the caller doesn't shorten the call.
    ///
    /// If keys share a refresh token, `isMeant` must also match the key that keeps it.
    ///
    /// - Parameter isMeant: Whether a key must be signed out; called on any thread, for the keys in memory and then for those in
    ///   the stores.
    /// - Returns: The tokens given up for each key, even if there are none, and whether the stores failed.
    public func reset(where isMeant: @escaping @Sendable (Key) -> Bool) async -> SessionChanges<Key> {
        await Task.detached(executorPreference: executor, priority: Task.currentPriority) { [self] in
            let keys = hold().filter(isMeant)
            defer { release() }
            async let first = signOut(keys) { await $0.reset() }
            let stored = await signOutStored(except: keys, where: isMeant)
            var changes = await first.merging(stored.changes) { first, _ in first }
            // Service A was created after the first step, and its load had its turn before the grant was fenced off.
            let late: Set = grant == nil ? [] : registry.withTable { $0.current }.keys.subtracting(changes.keys).filter(isMeant)
            changes.merge(await signOut(late) { await $0.dropUnlessFenced() }) { first, _ in first }
            return SessionChanges(changes: changes, storeFailure: stored.failure)
        }.value
    }

    private var executor: (any TaskExecutor)? { environment.executor }

    private func hold() -> Set<Key> {
        registry.withTable { $0.hold() }.keys.union(grants.withTable { $0.hold() }.keys)
    }

    private func release() {
        _ = registry.withTable { $0.shelf.release() }
        _ = grants.withTable { $0.shelf.release() }
    }

    private func signOut(
        _ keys: Set<Key>, _ reset: @escaping @Sendable (TokenService) async -> SessionChange?
    ) async -> [Key: SessionChange] {
        await withTaskGroup(of: (Key, SessionChange?).self) { group in
            for key in keys { group.addTask { (key, await reset(self[key])) } }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    // MARK: Stored keys

    /// Signs out the keys that the stores name, a few at a time, while they name them.
    private func signOutStored(
        except known: Set<Key>, where isMeant: @escaping @Sendable (Key) -> Bool
    ) async -> (changes: [Key: SessionChange], failure: TokenServiceError?) {
        guard stores != nil || sharing != nil else { return ([:], nil) }
        let progress = Progress(registry.clock)
        let (named, line) = AsyncThrowingStream<Key, any Error>.makeStream()
        nameStoredKeys(to: line, progress, where: isMeant)
        let watch = Task.detached(on: executor) {
            if await progress.hasStopped() { line.finish(throwing: TokenServiceError.storeIsLate) }
        }
        defer { watch.cancel() }
        return await withTaskGroup(of: (Key, SessionChange?).self) { group in
            var known = known, running = 0, changes: [Key: SessionChange] = [:], failure: TokenServiceError?
            do {
                for try await key in named where known.insert(key).inserted {
                    // A disk that is given thousands of removals at once completes none of them in time.
                    if running == Self.signOutsAtOnce, let (key, change) = await group.next() {
                        changes[key] = change
                        if change?.storeFailure != nil, progress.isOver { throw TokenServiceError.storeIsLate }
                        running -= 1
                    }
                    group.addTask {
                        let change = await self[key].resetUnlessFenced()
                        if change?.storeFailure == nil { progress.note() }
                        return (key, change)
                    }
                    running += 1
                }
            } catch {
                failure = error as? TokenServiceError ?? TokenServiceError(.storeFailed, underlying: error)
            }
            for await (key, change) in group { changes[key] = change }
            return (changes, failure)
        }
    }

    /// Asks the stores for their keys, and queues those that match.
    private func nameStoredKeys(
        to line: AsyncThrowingStream<Key, any Error>.Continuation, _ progress: Progress,
        where isMeant: @escaping @Sendable (Key) -> Bool
    ) {
        let (stores, sharing, loadExecutor) = (stores, sharing, environment.loadExecutor)
        let name: @Sendable (Key) -> Void = { key in
            progress.note()
            if isMeant(key) { line.yield(key) }
        }
        Task.detached(on: executor) {
            do {
                try await withTaskExecutorPreference(loadExecutor) {
                    try await stores?.forEachStoredKey(name)
                    try await sharing?.forEachStoredKey(name)
                }
                line.finish()
            } catch {
                line.finish(throwing: error)
            }
        }
    }

    /// How many keys without services are signed out at a time.
    private static var signOutsAtOnce: Int { 16 }
}

/// The last time at which the stores named a key or finished their part of a sign-out.
private final class Progress: Sendable {
    private let clock: ServiceClock
    private let last: Lock<Duration>

    init(_ clock: ServiceClock) {
        self.clock = clock
        last = Lock(clock.now())
    }

    func note() {
        let now = clock.now()
        last.withLock { $0 = max($0, now) }
    }

    private var end: Duration { last.withLock { $0 } + RefreshPolicy.storeTimeout }

    /// Whether there has been no progress for too long.
    var isOver: Bool { clock.now() >= end }

    /// Waits until there has been no progress for too long; returns `false` if the task is cancelled.
    func hasStopped() async -> Bool {
        while await clock.hasPassed(end) {
            if isOver { return true }
        }
        return false
    }
}
