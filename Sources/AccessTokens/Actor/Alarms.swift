import TokenServiceConcurrency

/// Wakes its owner when time limits have passed; one alarm serves all limits, until an earlier one is set.
package struct Alarms: ~Copyable, Sendable {
    private struct State {
        var alarm: Sleeper.Alarm?
        /// A sleeper of its own, created on first use.
        var ownSleeper: Sleeper?
    }

    private let state = Lock(State())

    package init() {}

    deinit {
        wakeNoMore()
    }

    /// Makes sure that the owner checks its time limits at this time.
    ///
    /// - Parameters:
    ///   - clock: The clock of `time`, always the same.
    ///   - executor: Where the owner is woken, always the same.
    ///   - ring: Checks all limits. It isn't called if an earlier alarm rings. Its captures are kept until then, or until
    ///     ``wakeNoMore()``.
    @inline(never)
    package func wake(
        at time: Duration, on clock: ServiceClock, executor: (any TaskExecutor)?, _ ring: @escaping Sleeper.Ring
    ) {
        // An execution that an explorer drives has a sleeper of its own: its sleeps begin and end with it.
        let isShared = clock === ServiceClock.continuous && executor == nil && !DrivenExecutions.areRunning
        let (later, alarm) = state.withLock { state -> (Sleeper.Alarm?, Sleeper.Alarm?) in
            let sleeper = isShared ? .shared : state.ownSleeper ?? Sleeper(clock: clock, executor: executor)
            if !isShared { state.ownSleeper = sleeper }
            if let set = state.alarm, set.isPending, set.sleeper === sleeper, set.time <= time { return (nil, nil) }
            let alarm = sleeper.add(at: time, ring)
            defer { state.alarm = alarm }
            return (state.alarm, alarm)
        }
        alarm?.set()
        later?.callOff()
    }

    /// The sleeper of the pending alarm.
    var sleeper: Sleeper? { state.withLock { $0.alarm?.sleeper } }

    /// Cancels the alarm, because no time limit is left.
    package func wakeNoMore() {
        state.withLock { $0.alarm.take() }?.callOff()
    }
}

extension TokenService {
    /// Makes sure that the service checks its time limits when the limit of a load or of the store has passed.
    ///
    /// The alarm retains the service until then, as the work that it limits does anyway. With a weak reference a load would cost
    /// twice as much.
    nonisolated func wake(at deadline: Duration) {
        alarms.wake(at: deadline, on: clock, executor: executor) { await self.hasPassed($0) }
    }

    /// Does the same for a caller's limit; the caller may have left long before.
    nonisolated func wake(atLimit limit: Duration) {
        alarms.wake(at: limit, on: clock, executor: executor) { [weak self] in await self?.hasPassed($0) }
    }

    /// Ends what has taken too long.
    ///
    /// Callers' own limits are handled without entering the actor.
    private nonisolated func hasPassed(_ now: Duration) async {
        let (late, next, deadline) = lobby.withLock {
            ($0.expire(at: now), $0.nextLimit, $0.snapshot.nextDeadline)
        }
        for waiter in late { waiter.resume(with: .failure(TokenServiceError(.deadlineExceeded))) }
        if let next { wake(atLimit: next) }
        // Step even if the deadline has yet to come: an alarm set from here could retain the service for a load that has just
        // ended.
        if deadline < .forever { await step { $0.elapse(to: max($1, now)) } }
    }
}
