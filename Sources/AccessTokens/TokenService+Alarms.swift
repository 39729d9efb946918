extension TokenService {
    /// The time on the service's clock.
    package nonisolated var now: Duration { clock.now() }

    /// Alarms on the service's clock, for the limits of somebody else.
    package nonisolated func makeAlarms() -> Alarms {
        Alarms(clock: clock, executor: executor)
    }

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
