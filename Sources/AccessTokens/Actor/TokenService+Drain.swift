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
    /// From this call on the service starts nothing by itself: no load, no refresh ahead, no store check. A valid token is still
    /// handed out. A caller that finds no token waits for the running load; if none runs, it gets
    /// ``TokenServiceError/Code/drained``. A running load continues, and its token is saved; one that
    /// still reads its store isn't begun. A load that waits for another key's
    /// or another process's load begins only if a caller waits for it. ``replace(with:)`` and ``reset()`` still work, and return
    /// when the store has saved or removed the token. ``resume()`` ends this state.
    ///
    /// What the store refused to save is saved again, at once and then after the usual pauses, unless its error's remedy says that
    /// waiting doesn't help.
    ///
    /// A load that was given up, because of its limit or a sign-out, may still bring a refresh token to save or to revoke. So
    /// this call waits for it, too, until it is forgotten. With a shared grant, it also waits for a mark that is being taken
    /// back. It doesn't wait for `onDiscard`, which is the program's own work.
    ///
    /// **Concurrent calls** wait independently. Cancelling the caller doesn't shorten the wait, since programs often cancel their
    /// tasks before they end.
    ///
    /// - Parameter limit: How long it waits at most, on the service's clock. Choose a limit below the time that the platform
    ///   allows the program.
    /// - Returns: Whether everything has ended, and what couldn't be saved. If it isn't ``DrainResult/isComplete``, ending the
    ///   program may lose a refresh token.
    @discardableResult
    public nonisolated func drain(within limit: Duration) async -> DrainResult {
        await drain { true }
        let end = clock.now() + min(limit, RefreshPolicy.longestLifetime), own = await waitForWork(within: limit)
        guard let lender = ties?.lender else { return own }
        return await own + lender.drain(within: max(end - clock.now(), .zero))
    }

    /// Drains the service, or lets it load again.
    ///
    /// - Parameter isDrained: Called inside the actor, so that the last decision counts, in whatever order concurrent calls
    ///   arrive.
    package nonisolated func drain(_ isDrained: @Sendable () -> Bool) async {
        await visit { service in service.step { machine, now in machine.drain(isDrained(), at: now) } }
    }

    /// Saves again what the store refused, if the pause has passed.
    package nonisolated func saveWhatIsDue() async {
        await visit { service in service.step { $0.elapse(to: $1) } }
    }

    /// Waits until no load and no save is under way, or until the limit passes.
    package nonisolated func waitForWork(within limit: Duration) async -> DrainResult {
        let hasEnded = await hasWorkEnded(within: limit)
        return await visit {
            // What is pending because a store refused it isn't under way.
            let hasEnded = hasEnded || !$0.isUnderWay(at: $0.clock.now()), unsaved = $0.machine.keeper.unsavedChange
            return DrainResult(hasEnded: hasEnded, unsaved: unsaved.map { [$0] } ?? [])
        }
    }

    /// Waits until no load and no save is under way or pending; returns `false` if the limit passes first.
    private nonisolated func hasWorkEnded(within limit: Duration) async -> Bool {
        var now = clock.now()
        let deadline = now + min(limit, RefreshPolicy.longestLifetime)
        while let (end, next) = await visit({ [now] in $0.nextWork(at: now) }) {
            if await wait(for: end, until: min(next, deadline)) { continue }
            if deadline <= next { return false }
            now = next
        }
        return true
    }

    /// Ends what ``drain(within:)`` began: the service loads again when a caller needs a token.
    ///
    /// Starts nothing by itself. Use it in a program that isn't ended after all, such as an app that comes back to the
    /// foreground.
    public nonisolated func resume() async {
        await drain { false }
    }

    /// Waits for a result until a time on the service's clock; returns `false` if the time comes first.
    package nonisolated func wait(for end: SingleResult<Void>, until deadline: Duration) async -> Bool {
        let alarms = Alarms()
        alarms.wake(at: deadline, on: clock, executor: executor) { _ in end.complete(with: .failure(TimeHasPassed())) }
        defer { alarms.wakeNoMore() }
        return (try? await end.value()) != nil
    }

    /// Returns when a drain has to look again, unless the result completes before; `nil` if all work has ended.
    private func nextWork(at moment: Duration) -> (end: SingleResult<Void>, next: Duration)? {
        let now = step { machine, now in
            machine.elapse(to: max(now, moment))
            return max(now, moment)
        }
        guard let next = workEnds(at: now) else { return nil }
        let end = SingleResult<Void>()
        drains.append((end, next))
        return (end, next)
    }

    /// When what is under way is forgotten or else, if nothing is, when the store is tried again; `nil`: never.
    private func workEnds(at now: Duration) -> Duration? {
        if ties?.session?.isAtWork ?? false { return .forever }
        if machine.isAtWork(at: now) { return machine.isAtWorkUntil }
        // A lender is drained on its own.
        return machine.keeper.isLent ? nil : machine.keeper.unsaved?.healsFrom
    }

    private func isUnderWay(at now: Duration) -> Bool { machine.isAtWork(at: now) || ties?.session?.isAtWork ?? false }

    /// Wakes the drains that wait for longer than necessary.
    func wakeDrains(at now: Duration) {
        let next = workEnds(at: now)
        drains.removeAll { drain in
            guard drain.next <= now || next.map({ $0 < drain.next }) ?? true else { return false }
            drain.end.complete(with: .success(()))
            return true
        }
    }
}

/// The limit of a wait has passed.
private struct TimeHasPassed: Error {}
