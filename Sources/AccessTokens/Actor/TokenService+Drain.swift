package import TokenServiceConcurrency

extension TokenService {
    /// Waits until the program can end without a loss: until no load and no save is under way, and none will start.
    ///
    /// Call it before the program ends or is suspended, after its last request:
    ///
    /// ```swift
    /// await tokens.drain(within: .seconds(8))
    /// ```
    ///
    /// From this call on the service starts nothing by itself: no load, no refresh ahead, no look at a store. A valid token is still
    /// handed out. A caller that finds none waits for the load that runs; if none runs, it gets
    /// ``TokenServiceError/Code/drained``. What runs goes on, and its token is saved. ``replace(with:)`` and ``reset()`` still work,
    /// and return when the store has done its part. ``resume()`` ends this.
    ///
    /// A load that was given up, by its limit or a sign-out, may still bring a refresh token to save or to revoke, so it is waited for,
    /// too. With a shared grant, so is a mark that is being taken back. What `onDiscard` does is the program's own: it isn't waited for.
    ///
    /// **Concurrent calls** each wait for themselves. The caller's cancellation cuts nothing short, since programs often cancel their
    /// tasks before they end.
    ///
    /// - Parameter limit: How long it waits at most, in the service's clock. Choose one below what the platform gives the program.
    /// - Returns: Whether all has ended; `false`: the limit has passed, and the program's end may lose a refresh token.
    @discardableResult
    public nonisolated func drain(within limit: Duration) async -> Bool {
        guard let end = await visit({ $0.beginDrain() }) else { return true }
        return await wait(for: end, until: clock.now() + min(limit, RefreshPolicy.longestLifetime))
    }

    /// Ends what ``drain(within:)`` began: the service loads again when a caller needs a token.
    ///
    /// Starts nothing itself. For a program that isn't ended after all, such as an app that comes back to the foreground.
    public nonisolated func resume() async {
        await visit { service in service.step { machine, _ in machine.drain(false) } }
    }

    /// Waits for something until a time on the service's clock; `false`: the time has come first.
    package nonisolated func wait(for end: SingleResult<Void>, until deadline: Duration) async -> Bool {
        let alarms = Alarms()
        alarms.wake(at: deadline, on: clock, executor: executor) { _ in end.complete(with: .failure(TimeHasPassed())) }
        defer { alarms.wakeNoMore() }
        return (try? await end.value()) != nil
    }

    /// Starts nothing any more; returns what is complete when all has ended, or `nil` if nothing is under way.
    private func beginDrain() -> SingleResult<Void>? {
        step { machine, now in
            machine.elapse(to: now)
            machine.drain()
        }
        guard isAtWork else { return nil }
        let end = SingleResult<Void>()
        drains.append(end)
        return end
    }

    private var isAtWork: Bool { machine.isAtWork || ties?.session?.isAtWork ?? false }

    func endDrains() {
        guard !isAtWork else { return }
        for end in drains { end.complete(with: .success(())) }
        drains = []
    }
}

/// A wait's own limit has passed.
private struct TimeHasPassed: Error {}
