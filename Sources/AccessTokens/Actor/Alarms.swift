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
    ///   - ring: Checks all limits. It isn't called if an earlier alarm rings. What it captures is kept until then, or until
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

    /// Cancels the alarm: no time limit is left.
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

    /// The same for a caller's limit; the caller may have left long before.
    nonisolated func wake(atLimit limit: Duration) {
        alarms.wake(at: limit, on: clock, executor: executor) { [weak self] in await self?.hasPassed($0) }
    }

    /// Ends what has taken too long; handles the callers' own limits without entering the actor.
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

/// Any clock with a fixed origin, from which its times are counted.
package final class ServiceClock: Sendable {
    /// The clock of all services with the default clock, except those that an explorer drives: they have a time of their own.
    static let continuous = ServiceClock(other: nil)

    /// The origin on the default clock, which is read directly because every hit pays for a reading.
    private let origin = ContinuousClock.now
    /// A clock other than the default one.
    private let other: OtherClock?

    /// A type-erased clock: one closure for each of its two uses.
    private struct OtherClock: Sendable {
        let isSystemClock: Bool
        let elapsed: @Sendable () -> Duration
        let sleep: @Sendable (_ until: Duration) async throws -> Void

        init<C: Clock<Duration>>(opening clock: C, at start: C.Instant) {
            isSystemClock = clock is SuspendingClock
            elapsed = { start.duration(to: clock.now) }
            sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
        }
    }

    private init(other: OtherClock?) {
        self.other = other
    }

    package static func opened(_ clock: any Clock<Duration>) -> ServiceClock {
        // Not `is`: a cast looks up the clock's type first.
        guard type(of: clock) == ContinuousClock.self else { return open(clock) }
        return DrivenExecutions.areRunning ? ServiceClock(other: nil) : continuous
    }

    private static func open(_ clock: some Clock<Duration>) -> ServiceClock {
        ServiceClock(other: OtherClock(opening: clock, at: clock.now))
    }

    /// Whether sleeps on it are the runtime's own.
    var isSystemClock: Bool { other?.isSystemClock ?? true }

    /// The time since the clock was opened.
    package func now() -> Duration {
        guard let other else { return origin.duration(to: .now) }
        return other.elapsed()
    }

    /// Sleeps for a time; returns `false` as soon as the task is cancelled.
    ///
    /// A clock that wakes too early is asked again, after growing pauses of real time if it keeps doing so: some tests replace
    /// `sleep` with a no-op. A clock that throws counts as having passed the time: an early time-out is better than a caller that
    /// waits forever.
    package func hasPassed(_ time: Duration) async -> Bool {
        var attempts = 0
        while !Task.isCancelled {
            do { try await sleep(until: time) } catch { return !Task.isCancelled }
            if now() >= time { return true }
            await Task.yield()
            attempts += 1
            if attempts > 100 { try? await Task.sleep(for: .milliseconds(1 << min(attempts - 100, 10))) }
        }
        return false
    }

    private func sleep(until time: Duration) async throws {
        if let other { return try await other.sleep(time) }
        try await ContinuousClock().sleep(until: origin.advanced(by: time), tolerance: nil)
    }
}
