#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension TokenService {
    /// What a service takes from the world around it: its clocks, its source of chance, and where its work runs.
    ///
    /// A program needs the default. Tests replace a part of it, or all with ``driven(by:clock:wallClock:seed:)``.
    public struct Environment: Sendable {
        /// What lifetimes, limits and pauses are measured with.
        public var clock: any Clock<Duration>

        /// What ``TokenServiceError/retryAt`` is told by, and the age of a restored token; nothing else.
        public var wallClock: @Sendable () -> Date

        /// The seed of the jitter; equal seeds give equal jitter.
        public var seed: UInt64

        /// Where the loader and the store run; `nil`: on the default pool.
        ///
        /// Time limits never run there: they hold even while a loader blocks the executor's only thread.
        public var loadExecutor: (any TaskExecutor)?

        /// Where time limits and visits to the actor run; `nil`: on the default pool.
        package var ownExecutor: (any TaskExecutor)?

        /// Creates an environment; each part has the default that a program needs.
        ///
        /// - Parameters:
        ///   - clock: What lifetimes, limits and pauses are measured with. The default also counts while the machine sleeps.
        ///   - wallClock: What ``TokenServiceError/retryAt`` is told by, and the age of a restored token.
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
        /// For tests that take steps, and for exploring schedules. On an executor that a loader blocks no time limit holds.
        ///
        /// - Parameters:
        ///   - executor: Where everything runs.
        ///   - clock: What lifetimes, limits and pauses are measured with.
        ///   - wallClock: What ``TokenServiceError/retryAt`` is told by, and the age of a restored token.
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
