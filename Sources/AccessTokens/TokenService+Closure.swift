#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension TokenService {
    /// Creates a service whose loader is a closure.
    ///
    /// - Parameters:
    ///   - policy: When tokens are refreshed, how long loads may take, how failures are paced.
    ///   - store: Where the token outlives the program; `nil`: nowhere.
    ///   - clock: What lifetimes, limits and pauses are measured with.
    ///   - wallClock: What ``TokenServiceError/retryAt`` is told by.
    ///   - seed: The seed of the jitter.
    ///   - executor: Where loads run; `nil`: on the default pool.
    ///   - isRepeatable: Whether another load may start while one that took too long still runs; see
    ///     ``TokenLoader/isRepeatable``.
    ///   - loader: Gets a new token; its parameter is the token to replace. See ``TokenLoader/loadToken(replacing:)``.
    public init(
        policy: RefreshPolicy = RefreshPolicy(),
        store: (any TokenStore)? = nil,
        clock: any Clock<Duration> = ContinuousClock(),
        wallClock: @escaping @Sendable () -> Date = { Date() },
        seed: UInt64 = .random(in: .min ... .max),
        executor: (any TaskExecutor)? = nil,
        isRepeatable: Bool = false,
        loader: @escaping @Sendable @concurrent (_ previous: AccessToken?) async throws -> AccessToken
    ) {
        self.init(
            policy: policy, store: store, clock: clock, wallClock: wallClock, seed: seed, executor: executor,
            loader: ClosureTokenLoader(isRepeatable: isRepeatable, load: loader))
    }
}
