import TokenServiceConcurrency

/// A clock whose time moves only when the test moves it.
///
/// Give it to the code under test, wait until that code sleeps, then let the time pass:
///
/// ```swift
/// let clock = ManualClock()
/// let nap = Task { try await clock.sleep(for: .seconds(30)) }
/// try await clock.waitForSleepers()
/// clock.advance(by: .seconds(30))
/// try await nap.value
/// ```
///
/// All methods may be called concurrently, from any thread. The clock starts no task and no timer: it resumes sleepers on the
/// thread that moves the time, and they continue on their own executors.
public final class ManualClock: Clock, Sendable {
    private struct State: Sendable {
        var now = Instant(offset: .zero)
        /// The sleeping tasks and their deadlines.
        var sleepers = WaitingLine<Instant, Void>()
        /// The tasks that wait for sleepers, and how many sleepers each waits for.
        var watchers = WaitingLine<Int, Void>()
    }

    private let state = Lock(State())

    /// Creates a clock whose time is zero.
    public init() {}

    /// The time on the clock: the sum of all advances.
    public var now: Instant { state.withLock { $0.now } }

    /// Zero: the clock measures any duration exactly.
    public var minimumResolution: Duration { .zero }

    /// The number of sleeping tasks.
    package var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// Suspends the task until the clock has been advanced to `deadline`.
    ///
    /// Returns at once if the deadline is now or in the past. The tolerance is ignored.
    ///
    /// - Throws: `CancellationError`, at once, when the task is or was cancelled; such a sleeper no longer counts.
    public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await state.wait(in: \.sleepers, as: deadline) { state in
            if deadline <= state.now { return .pass(()) }
            let sleepers = state.sleepers.count + 1
            return .wait(resuming: state.watchers.take { $0 <= sleepers }.map(\.answer))
        }
    }

    /// Waits until at least `count` tasks sleep; returns at once if they do.
    ///
    /// So a test knows that the code under test has reached its `sleep`, and that advancing the clock wakes it. Any number of
    /// tasks may wait for any counts.
    ///
    /// - Throws: `CancellationError`, at once, when the task is or was cancelled.
    public func waitForSleepers(_ count: Int = 1) async throws {
        try await state.wait(in: \.watchers, as: count) { $0.sleepers.count >= count ? .pass(()) : .wait() }
    }

    /// Moves the time forward by a duration and resumes the sleepers whose deadlines have passed.
    ///
    /// They are resumed in the order of their deadlines; sleepers with the same deadline in the order in which they went to
    /// sleep. The time has moved before the first is resumed: as after a computer's sleep, each finds the clock at the end of the
    /// jump, not at its own deadline. Concurrent advances each resume their own sleepers.
    ///
    /// - Parameter duration: How much time passes; nothing happens if it is negative.
    public func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now = max(state.now, state.now.advanced(by: duration))
            return state.sleepers.take { [now = state.now] in $0 <= now }
        }
        for sleeper in due.sorted(by: { ($0.tag, $0.id) < ($1.tag, $1.id) }) { sleeper.answer.complete(with: .success(())) }
    }
}
