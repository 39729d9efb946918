/// Any clock, opened once: what is left is a closure for each of its two uses.
struct ServiceClock: Sendable {
    /// Where the default clock was opened; it is read directly, since every hit pays for a reading.
    private let origin: ContinuousClock.Instant?
    private let elapsed: @Sendable () -> Duration
    private let sleep: @Sendable (_ until: Duration) async throws -> Void

    init(_ clock: any Clock<Duration>) {
        self = Self.open(clock)
    }

    private init<C: Clock<Duration>>(opening clock: C, at start: C.Instant) {
        origin = clock is ContinuousClock ? start as? ContinuousClock.Instant : nil
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
    /// A clock that wakes too early is asked again. One that fails counts as having passed the time: better an early
    /// time-out than a caller that waits for ever.
    func hasPassed(_ time: Duration) async -> Bool {
        while true {
            do { try await sleep(time) } catch { return !Task.isCancelled }
            if now() >= time { return !Task.isCancelled }
            await Task.yield()
        }
    }
}
