extension TokenService {
    /// The times at which the service wakes itself, and who sleeps until then: the earliest one last.
    ///
    /// One sleeper serves every time limit, of callers, loads and the store alike.
    struct Alarms: Sendable {
        fileprivate var sleepers: [(time: Duration, task: Task<Void, Never>?)] = []

        /// Whether a sleeper is needed that wakes before all others.
        fileprivate mutating func add(_ time: Duration) -> Bool {
            if let earliest = sleepers.last?.time, earliest <= time { return false }
            sleepers.append((time, nil))
            return true
        }

        fileprivate mutating func started(_ task: Task<Void, Never>, until time: Duration) {
            if let index = sleepers.firstIndex(where: { $0.time == time }) { sleepers[index].task = task }
        }

        fileprivate mutating func remove(_ time: Duration) {
            sleepers.removeAll { $0.time == time }
        }

        /// Nothing can be late any longer.
        mutating func removeAll() -> [Task<Void, Never>] {
            defer { sleepers = [] }
            return sleepers.compactMap(\.task)
        }
    }

    /// Ends the sleepers when there is no time limit left.
    ///
    /// On the system's clocks a sleeper is left to find nothing to do. The runtime keeps a cancelled sleep until its time in
    /// any case; the one that goes on serves the limits of the next load, so that a thousand loads don't leave a thousand.
    func wakeNoMore() {
        guard !clock.isSystemClock else { return }
        for task in alarms.withLock({ $0.removeAll() }) { task.cancel() }
    }

    /// Makes sure that the service looks at its time limits at this time.
    nonisolated func wake(at time: Duration?) {
        guard let time, alarms.withLock({ $0.add(time) }) else { return }
        let task = Task.detached(executorPreference: executor) { [weak self, clock] in
            guard await clock.hasPassed(time) else { return }
            await self?.hasPassed(time)
        }
        alarms.withLock { $0.started(task, until: time) }
    }

    /// Ends what has taken too long; the callers' own limits without coming in to the actor.
    private nonisolated func hasPassed(_ time: Duration) async {
        alarms.withLock { $0.remove(time) }
        // A clock that can't sleep counts as having passed the time.
        let now = max(clock.now(), time)
        let (late, next, deadline) = lobby.withLock {
            ($0.expire(at: now), $0.nextLimit, $0.snapshot.nextDeadline)
        }
        for waiter in late { waiter.resume(with: .failure(TokenServiceError(.deadlineExceeded))) }
        if let deadline, deadline <= now {
            await step { $0.elapse(to: max($1, now)) }
        } else {
            wake(at: deadline)
        }
        wake(at: next)
    }
}
