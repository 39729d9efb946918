extension TokenService {
    /// Creates a service whose loader is a closure.
    ///
    /// - Parameters:
    ///   - policy: When tokens are refreshed, how long loads may take, how failures are paced.
    ///   - store: Where the token outlives the program; `nil`: nowhere.
    ///   - environment: Clocks, jitter and executors; tests replace them.
    ///   - onDiscard: Called with each token whose grant is to be revoked.
    ///   - isRepeatable: Whether another load may start while one that took too long still runs; see
    ///     ``TokenLoader/isRepeatable``.
    ///   - loader: Gets a new token; its parameter is the token to replace. See ``TokenLoader/loadToken(replacing:)``.
    public init(
        policy: RefreshPolicy = RefreshPolicy(),
        store: (any TokenStore)? = nil,
        environment: Environment = Environment(),
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)? = nil,
        isRepeatable: Bool = false,
        loader: @escaping @Sendable @concurrent (_ previous: AccessToken?) async throws -> AccessToken
    ) {
        self.init(
            policy: policy, store: store, environment: environment, onDiscard: onDiscard,
            loader: ClosureTokenLoader(isRepeatable: isRepeatable, load: loader))
    }
}
