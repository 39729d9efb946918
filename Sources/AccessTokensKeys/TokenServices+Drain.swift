public import AccessTokens
import TokenServiceConcurrency

extension TokenServices {
    /// Waits until the program can end without a loss: until no load and no save of any key is under way, and none will start.
    ///
    /// See `TokenService.drain(within:)`. It affects every key's service, including those made later, until ``resume()``. First
    /// the loads end; then the refresh tokens that keys share are saved.
    ///
    /// - Parameter limit: How long it waits at most, on the services' clock, whatever the number of keys.
    /// - Returns: Whether everything has ended, and what couldn't be saved, of all keys together.
    @discardableResult
    public func drain(within limit: Duration) async -> DrainResult {
        let end = registry.clock.now() + min(limit, RefreshPolicy.longestLifetime)
        let ofServices = await tellAll(isDrained: true) { await $0.waitForWork(within: self.time(until: end)) }
        // Loads save the refresh tokens that keys share, so only now can all saves be awaited.
        let ofGrants = await all(grants.withTable { $0.current }.keys) {
            await self.lentGrant($0).drain(within: self.time(until: end))
        }
        return ofServices + ofGrants
    }

    /// Ends what ``drain(within:)`` began, for every key.
    public func resume() async {
        _ = await tellAll(isDrained: false) { _ in DrainResult() }
    }

    /// Drains every key's service, or lets it load again.
    ///
    /// Each service reads the common setting when it is notified, so that a drain and a resume at the same time leave all keys
    /// alike.
    private func tellAll(isDrained: Bool, then body: @escaping @Sendable (TokenService) async -> DrainResult) async
        -> DrainResult
    {
        self.isDrained.withLock { $0 = isDrained }
        return await all(registry.withTable { $0.turn() }.keys) { key in
            let service = self[key]
            await service.drain { self.isDrained.withLock { $0 } }
            return await body(service)
        }
    }

    private func time(until end: Duration) -> Duration { max(end, .zero) - registry.clock.now() }

    /// Calls `body` for all keys at once; returns what it returned for all of them.
    private func all(_ keys: Set<Key>, _ body: @escaping @Sendable (Key) async -> DrainResult) async -> DrainResult {
        await withTaskGroup(of: DrainResult.self) { group in
            for key in keys { group.addTask { await body(key) } }
            return await group.reduce(DrainResult()) { $0 + $1 }
        }
    }
}
