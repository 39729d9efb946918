import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension TokenService {
    /// A service's outside dependencies: its clocks, its source of randomness, and where its work runs.
    ///
    /// Programs use the default. Tests replace a part of it, or all with ``driven(by:clock:wallClock:seed:)``.
    public struct Environment: Sendable {
        /// The clock that measures lifetimes, limits and pauses.
        package var clock: any Clock<Duration>

        /// The wall clock for ``TokenServiceError/retryAt`` and for the age of a restored token; used for nothing else.
        package var wallClock: @Sendable () -> Date

        /// The seed of the jitter; equal seeds give equal jitter.
        package var seed: UInt64

        /// Where the loader and the store run; `nil`: on the default pool, or, for a loader with a completion handler, on a thread
        /// of its own.
        ///
        /// Time limits never run there: they hold even while a loader blocks the executor's only thread.
        package var loadExecutor: (any TaskExecutor)?

        /// Where time limits and visits to the actor run; `nil`: on a serial queue of their own.
        package var executor: (any TaskExecutor)?

        /// The executor of time limits; an explorer drives default actors and the pool, but no queue.
        package var limitExecutor: (any TaskExecutor)? {
            executor == nil && !DrivenExecutions.areRunning ? ServiceQueue.shared : executor
        }

        /// Creates an environment; the defaults suit programs.
        ///
        /// - Parameters:
        ///   - clock: The clock that measures lifetimes, limits and pauses. The default one also counts while the machine sleeps.
        ///   - wallClock: The wall clock for ``TokenServiceError/retryAt`` and for the age of a restored token.
        ///   - seed: The seed of the jitter.
        ///   - executor: Where the service's own work runs, and where its time limits are checked; `nil`: on a serial queue that
        ///     all services share. That queue needs no thread of Swift's pool, nor of `DispatchQueue.global()`, so callers that
        ///     block all of those threads delay no other caller and no limit.
        ///   - loadExecutor: Where the loader and the store run; `nil`: on the default pool. If code of your program blocks the
        ///     pool's threads, an `async` loader and a store need one. Without either executor, a loader with a completion handler is
        ///     called on a thread of its own.
        public init(
            clock: any Clock<Duration> = ContinuousClock(),
            wallClock: @escaping @Sendable () -> Date = { Date() },
            seed: UInt64 = .random(in: .min ... .max),
            executor: (any TaskExecutor)? = nil,
            loadExecutor: (any TaskExecutor)? = nil
        ) {
            self.clock = clock
            self.wallClock = wallClock
            self.seed = seed
            self.executor = executor
            // Behind a loader that blocks it, no limit would hold.
            self.loadExecutor = loadExecutor ?? executor.map { _ in globalConcurrentExecutor }
        }

        /// An environment in which everything the service does runs on one executor, its time limits included.
        ///
        /// For tests that run step by step, and for exploring schedules. While a loader blocks the executor, no time limit holds.
        ///
        /// - Parameters:
        ///   - executor: Where everything runs.
        ///   - clock: The clock that measures lifetimes, limits and pauses.
        ///   - wallClock: The wall clock for ``TokenServiceError/retryAt`` and for the age of a restored token.
        ///   - seed: The seed of the jitter.
        public static func driven(
            by executor: any TaskExecutor,
            clock: any Clock<Duration> = ContinuousClock(),
            wallClock: @escaping @Sendable () -> Date = { Date() },
            seed: UInt64 = .random(in: .min ... .max)
        ) -> Environment {
            Environment(clock: clock, wallClock: wallClock, seed: seed, executor: executor, loadExecutor: executor)
        }
    }
}

/// A clock of any type, with a fixed origin from which times are counted.
package final class ServiceClock: Sendable {
    /// The clock of all services with the default clock, except those that an explorer drives, which have their own time.
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

    /// Whether sleeping on it uses the runtime's own sleep.
    var isSystemClock: Bool { other?.isSystemClock ?? true }

    /// The time since the clock was opened.
    package func now() -> Duration {
        guard let other else { return origin.duration(to: .now) }
        return other.elapsed()
    }

    /// Sleeps for a time; returns `false` as soon as the task is cancelled.
    ///
    /// A clock that wakes too early sleeps again, after growing pauses of real time if it keeps waking early: some tests replace
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
