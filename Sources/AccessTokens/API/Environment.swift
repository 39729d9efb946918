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

        /// Where the loader and the store run; `nil`: on the default pool.
        ///
        /// Time limits never run there: they hold even while a loader blocks the executor's only thread.
        package var loadExecutor: (any TaskExecutor)?

        /// Where time limits and visits to the actor run; `nil`: on the default pool.
        package var ownExecutor: (any TaskExecutor)?

        /// Creates an environment; the defaults suit programs.
        ///
        /// - Parameters:
        ///   - clock: The clock that measures lifetimes, limits and pauses. The default one also counts while the machine sleeps.
        ///   - wallClock: The wall clock for ``TokenServiceError/retryAt`` and for the age of a restored token.
        ///   - seed: The seed of the jitter.
        ///   - loadExecutor: Where the loader and the store run; `nil`: on the default pool.
        public init(
            clock: any Clock<Duration> = ContinuousClock(),
            wallClock: @escaping @Sendable () -> Date = { Date() },
            seed: UInt64 = .random(in: .min ... .max),
            loadExecutor: (any TaskExecutor)? = nil
        ) {
            self.clock = clock
            self.wallClock = wallClock
            self.seed = seed
            self.loadExecutor = loadExecutor
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
            var environment = Environment(clock: clock, wallClock: wallClock, seed: seed, loadExecutor: executor)
            environment.ownExecutor = executor
            return environment
        }
    }
}
