/// Wakes its owner when time limits have passed: one sleeper serves them all, until an earlier limit comes.
package final class Alarms: Sendable {
    private let clock: ServiceClock
    private let executor: (any TaskExecutor)?
    /// Who sleeps until when: the earliest one last.
    private let sleepers = Lock<[(time: Duration, task: Task<Void, Never>?)]>([])

    /// From so many sleepers on, the next one wakes when half of its time has passed: so limits that come each a little
    /// earlier than the one before don't make a sleeper each, but one for each halving, down to a millisecond.
    private static let many = 4

    init(clock: ServiceClock, executor: (any TaskExecutor)?) {
        self.clock = clock
        self.executor = executor
    }

    deinit {
        cancelAll()
    }

    /// Makes sure that the owner looks at its time limits at this time.
    ///
    /// - Parameter ring: Looks at all of them. It isn't called if a sleeper wakes before, and must not keep the owner alive.
    package func wake(at time: Duration, _ ring: @escaping @Sendable (_ now: Duration) async -> Void) {
        let rest = time - clock.now()
        let time: Duration? = sleepers.withLock { sleepers in
            if let next = sleepers.last?.time, next <= time { return nil }
            let isCrowded = sleepers.count >= Self.many && rest > .milliseconds(1)
            sleepers.append((isCrowded ? time - rest / 2 : time, nil))
            return sleepers.last?.time
        }
        guard let time else { return }
        let task = Task.detached(executorPreference: executor) { [weak self, clock] in
            guard await clock.hasPassed(time) else { return }
            self?.sleepers.withLock { $0.removeAll { $0.time == time } }
            // A clock that can't sleep counts as having passed the time.
            await ring(max(clock.now(), time))
        }
        let isNeeded = sleepers.withLock { sleepers in
            guard let index = sleepers.firstIndex(where: { $0.time == time }) else { return false }
            sleepers[index].task = task
            return true
        }
        // It woke meanwhile, or was ended before it was known.
        if !isNeeded { task.cancel() }
    }

    /// Ends the sleepers when there is no time limit left.
    ///
    /// On the system's clocks a sleeper is left to find nothing to do. The runtime keeps a cancelled sleep until its time in
    /// any case; the one that goes on serves the limits of the next load, so that a thousand loads don't leave a thousand.
    package func wakeNoMore() {
        if !clock.isSystemClock { cancelAll() }
    }

    private func cancelAll() {
        let ended = sleepers.withLock { sleepers in
            defer { sleepers = [] }
            return sleepers
        }
        for sleeper in ended { sleeper.task?.cancel() }
    }
}

extension TokenService {
    /// Makes sure that the service looks at its time limits at this time.
    nonisolated func wake(at time: Duration?) {
        guard let time else { return }
        alarms.wake(at: time) { [weak self] in await self?.hasPassed($0) }
    }

    /// Ends what has taken too long; the callers' own limits without coming in to the actor.
    private nonisolated func hasPassed(_ now: Duration) async {
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
