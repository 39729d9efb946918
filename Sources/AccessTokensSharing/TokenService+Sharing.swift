public import AccessTokens

extension TokenService {
    /// Creates a service that shares its grant with others: in this process, in others, or on other hosts.
    ///
    /// All of them use the same record, wait for one load, and adopt its token. A refresh token is presented only after the
    /// record says so, and the server's answer is saved before any caller gets it. Read *Several processes, one sign-in* first: a
    /// server with a grace period protects a session better than any client can.
    ///
    /// - Parameters:
    ///   - policy: When tokens are refreshed, how long loads may take, how failures are paced.
    ///   - sharedStore: Stores the grant. Read at the first miss and before each load; a valid token needs no read.
    ///   - sharing: How long other processes' marks are respected, how often callers check for a sign-out, and how records are
    ///     encrypted.
    ///   - environment: Clocks, jitter and executors; tests replace them.
    ///   - onDiscard: Called with each token that the service gives up although its grant may still be good at the server.
    ///   - loader: Gets new tokens.
    public init(
        policy: RefreshPolicy = RefreshPolicy(),
        sharedStore: any SharedTokenStore,
        sharing: TokenSharing = TokenSharing(),
        environment: Environment = Environment(),
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)? = nil,
        loader: some TokenLoader
    ) {
        self.init(
            policy: policy, session: { SharedSession(sharedStore, sharing, clock: $0, environment: $1) },
            environment: environment, onDiscard: onDiscard, loader: loader)
    }

    /// The same for a closure that gets a new token.
    ///
    /// Its parameter is the token to replace, which another process may have loaded.
    ///
    /// `isRepeatable` says whether another load may start while one that took too long still runs; see
    /// `TokenLoader.isRepeatable`. Two loads with one rotating refresh token are not repeatable.
    public init(
        policy: RefreshPolicy = RefreshPolicy(),
        sharedStore: any SharedTokenStore,
        sharing: TokenSharing = TokenSharing(),
        environment: Environment = Environment(),
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)? = nil,
        isRepeatable: Bool = false,
        loader: @escaping @Sendable @concurrent (_ previous: AccessToken?) async throws -> AccessToken
    ) {
        self.init(
            policy: policy, sharedStore: sharedStore, sharing: sharing, environment: environment, onDiscard: onDiscard,
            loader: ClosureTokenLoader(isRepeatable: isRepeatable, load: loader))
    }
}
