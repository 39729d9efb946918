/// Any clock, opened once: what is left is a closure for each of its two uses.
struct ServiceClock: Sendable {
    /// Where the default clock was opened; it is read directly, since every hit pays for a reading.
    private let origin: ContinuousClock.Instant?
    /// Whether sleeps on it are the runtime's own.
    let isSystemClock: Bool
    private let elapsed: @Sendable () -> Duration
    private let sleep: @Sendable (_ until: Duration) async throws -> Void

    init(_ clock: any Clock<Duration>) {
        self = Self.open(clock)
    }

    private init<C: Clock<Duration>>(opening clock: C, at start: C.Instant) {
        origin = clock is ContinuousClock ? start as? ContinuousClock.Instant : nil
        isSystemClock = clock is ContinuousClock || clock is SuspendingClock
        elapsed = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }

    private static func open(_ clock: some Clock<Duration>) -> ServiceClock {
        ServiceClock(opening: clock, at: clock.now)
    }

    /// The time since the clock was opened.
    func now() -> Duration {
        if let origin { origin.duration(to: .now) } else { elapsed() }
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
