public import AccessTokens
public import AccessTokensKeys

extension TokenServices {
    /// Creates the services' table for keys whose grants other processes use, too, without any service.
    ///
    /// Each key has a record of its own, and so a grant of its own. Everything that is true of one service over a shared store
    /// (`TokenService.init(policy:sharedStore:sharing:environment:onDiscard:loader:)`) is true of each key. A service is not
    /// released while its record has yet to learn of a sign-in or a sign-out, nor while others respect its mark there.
    /// `reset(where:)` writes a sign-out into the record of each matching key, even if another process has made the record.
    ///
    /// - Parameters:
    ///   - limit: How many idle services are kept, at least 0.
    ///   - policy: Each key's policy; `nil`: the default policy for all. Called like `loader`.
    ///   - sharedStores: Store the keys' grants.
    ///   - sharing: How long other processes' marks are respected, how often callers check for a sign-out, and how records are
    ///     encrypted; for all keys.
    ///   - environment: Clocks, jitter and executors of all services; tests replace them.
    ///   - onDiscard: Called with each token that a service gives up although its grant may still be good at the server.
    ///   - loader: Makes a key's loader. Called whenever a key's service is made, on the caller's thread, outside all locks.
    ///     Calls may run at the same time for several keys, or twice for one; then one of the two loaders is not used. It must
    ///     not take long.
    public convenience init(
        keepingIdle limit: Int = 1_000,
        policy: (@Sendable (Key) -> RefreshPolicy)? = nil,
        sharedStores: any SharedTokenStores<Key>,
        sharing: TokenSharing = TokenSharing(),
        environment: TokenService.Environment = TokenService.Environment(),
        onDiscard: (@Sendable (Key, DiscardedGrant) async -> Void)? = nil,
        loader: @escaping @Sendable (Key) -> any TokenLoader
    ) {
        self.init(
            keepingIdle: limit, policy: policy, grant: nil, stores: nil,
            sharing: KeySharing { key in
                let store = sharedStores.store(for: key)
                return { SharedSession(store, sharing, clock: $0, environment: $1) }
            } forEachStoredKey: {
                try await sharedStores.forEachStoredKey($0)
            }, environment: environment, onDiscard: onDiscard, loader: loader)
    }

    /// The same for one closure that gets every key's new token, and whose second parameter is the token to replace.
    ///
    /// `isRepeatable` says whether another load may start while one that took too long still runs; see
    /// `TokenLoader.isRepeatable`.
    public convenience init(
        keepingIdle limit: Int = 1_000,
        policy: (@Sendable (Key) -> RefreshPolicy)? = nil,
        sharedStores: any SharedTokenStores<Key>,
        sharing: TokenSharing = TokenSharing(),
        environment: TokenService.Environment = TokenService.Environment(),
        onDiscard: (@Sendable (Key, DiscardedGrant) async -> Void)? = nil,
        isRepeatable: Bool = false,
        loader: @escaping @Sendable @concurrent (_ key: Key, _ previous: AccessToken?) async throws -> AccessToken
    ) {
        self.init(
            keepingIdle: limit, policy: policy, sharedStores: sharedStores, sharing: sharing, environment: environment,
            onDiscard: onDiscard, loader: { key in ClosureTokenLoader(isRepeatable: isRepeatable) { try await loader(key, $0) } })
    }
}
