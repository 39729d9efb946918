import TokenServiceConcurrency

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
        let task = Task.detached(on: executor) { [weak self, clock] in
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

/// Any clock, opened once: what is left is a closure for each of its two uses.
struct ServiceClock: Sendable {
    /// Whether it is the default clock, which is read directly, since every hit pays for a reading.
    private let isContinuousClock: Bool
    /// Where the default clock was opened.
    private let origin: ContinuousClock.Instant
    /// Whether sleeps on it are the runtime's own.
    let isSystemClock: Bool
    private let elapsed: @Sendable () -> Duration
    private let sleep: @Sendable (_ until: Duration) async throws -> Void

    init(_ clock: any Clock<Duration>) {
        self = Self.open(clock)
    }

    private init<C: Clock<Duration>>(opening clock: C, at start: C.Instant) {
        isContinuousClock = clock is ContinuousClock
        origin = start as? ContinuousClock.Instant ?? .now
        isSystemClock = clock is ContinuousClock || clock is SuspendingClock
        elapsed = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }

    private static func open(_ clock: some Clock<Duration>) -> ServiceClock {
        ServiceClock(opening: clock, at: clock.now)
    }

    /// The time since the clock was opened.
    func now() -> Duration {
        isContinuousClock ? origin.duration(to: .now) : elapsed()
    }

    /// Waits for a time; `false` at once when the task is cancelled.
    ///
    /// A clock that wakes too early is asked again, after growing pauses of real time if it goes on so: some tests replace
    /// `sleep` with nothing. One that fails counts as having passed the time: better an early time-out than a caller that
    /// waits without end.
    func hasPassed(_ time: Duration) async -> Bool {
        var attempts = 0
        while !Task.isCancelled {
            do { try await sleep(time) } catch { return !Task.isCancelled }
            if Task.isCancelled { return false }
            if now() >= time { return true }
            await Task.yield()
            attempts += 1
            if attempts > 100 { try? await Task.sleep(for: .milliseconds(1 << min(attempts - 100, 10))) }
        }
        return false
    }
}
