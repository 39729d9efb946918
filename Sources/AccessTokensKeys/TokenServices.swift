public import AccessTokens
import TokenServiceConcurrency

/// Gives each key of a program its own `TokenService`: each scope, audience, account or tenant.
///
/// ```swift
/// let services = TokenServices<Account> { account, previous in try await fetchToken(for: account, replacing: previous) }
/// let token = try await services[account].retrieveToken()
/// ```
///
/// A key's service is created when it is first requested; everything that a service can do works with it unchanged. Each has its
/// own token, load, back-off and store, so a failing key doesn't slow down the others, and no key ever gets another key's token.
///
/// **Bounded.** Only a limited number of idle services is kept; the least recently used goes first. A service isn't idle while
/// callers wait, while a load or a save runs, during a pause after failures and for a minute after it, while a refused token
/// might return, or until the store has its refresh token or its sign-out. Without a store the only copy of a refresh token is in
/// the service, which is then kept until a sign-out. A service that was released and is still held elsewhere is found again:
/// there are never two for one key.
///
/// ## Keys that share a refresh token
///
/// Some servers give an account one refresh token, for access tokens of several audiences. Use `grant` to say which key keeps it.
/// Then the loads of those keys take turns, each with the refresh token that the last one received. Sign in through any of them:
/// all keys use a refresh token given to `TokenService.replace(with:)` from then on. `TokenService.reset()` of one key signs all
/// of them out: it returns when every key's service has been reset. To sign out an account that may have no service at the
/// moment, call ``reset(where:)``. The store of the key that keeps the grant holds the refresh token; access tokens are not
/// stored. A load's wait for its turn counts towards its limit (`RefreshPolicy(loadTimeout:)`). A load that never ends gives its
/// turn up at a sign-in or a sign-out of any of the keys, and otherwise four times that limit after its start, or after the limit
/// if it may be repeated.
///
/// **Concurrent calls.** Everything may be called from anywhere at any time. Don't use a key whose `hash(into:)` or `==` calls
/// back: both are called under a lock. A key that is an object may call back in its `deinit`.
public final class TokenServices<Key: Hashable & Sendable>: Sendable {
    typealias Discard = @Sendable (DiscardedGrant) async -> Void

    @usableFromInline let registry: KeyRegistry<Key, TokenService>
    /// The grants that several keys share, each under the key that keeps it.
    let grants: KeyRegistry<Key, LentGrant>
    let stores: (any TokenStores<Key>)?
    /// How each key shares its grant with other processes; if set, there are no ``stores``.
    let sharing: KeySharing?
    let environment: TokenService.Environment
    /// Whether services that are created from now on are drained; see ``drain(within:)``.
    let isDrained = Lock(false)
    private let policy: (@Sendable (Key) -> RefreshPolicy)?
    /// Created once, because copying takes less time.
    private let defaultPolicy = RefreshPolicy()
    let grant: (@Sendable (Key) -> Key)?
    private let onDiscard: (@Sendable (Key, DiscardedGrant) async -> Void)?
    private let loader: @Sendable (Key) throws -> any TokenLoader

    /// Creates the services' table, without any service.
    ///
    /// - Parameters:
    ///   - limit: How many idle services are kept, at least 0.
    ///   - policy: Each key's policy; `nil`: the default policy for all. Called like `loader`.
    ///   - grant: Which key keeps the refresh token that a key uses, for keys that share one; see above.
    ///     `nil`: each key has its own grant.
    ///   - stores: Keep the tokens between runs of the program, and while their services are released; `nil` to keep them
    ///     nowhere.
    ///   - environment: Clocks, jitter and executors of all services; tests replace them.
    ///   - onDiscard: Called with each token that a service gives up although its grant may still be good at the server; see
    ///     `TokenService.init(policy:store:environment:onDiscard:loader:)`.
    ///   - loader: Creates a key's loader. Called whenever a key's service is created, on the caller's thread, outside all locks.
    ///     Calls may run at the same time for several keys, or more than once for one; then only one of the loaders is used. It
    ///     must not take long. If it throws, the key's load fails with that error, and each further load calls it again; until the
    ///     key's service is released, its loads then count as not repeatable and its tokens as bound to no key.
    public convenience init(
        keepingIdle limit: Int = 1_000,
        policy: (@Sendable (Key) -> RefreshPolicy)? = nil,
        grant: (@Sendable (Key) -> Key)? = nil,
        stores: (any TokenStores<Key>)? = nil,
        environment: TokenService.Environment = TokenService.Environment(),
        onDiscard: (@Sendable (Key, DiscardedGrant) async -> Void)? = nil,
        loader: @escaping @Sendable (Key) throws -> any TokenLoader
    ) {
        self.init(
            keepingIdle: limit, policy: policy, grant: grant, stores: stores, sharing: nil, environment: environment,
            onDiscard: onDiscard, loader: loader)
    }

    /// Replaces the stores for keys that share their grants with other processes.
    package struct KeySharing: Sendable {
        let session: @Sendable (Key) -> GrantSessionMaker
        /// A closure, since with an `any StoredKeys` each key's service would take a tenth longer to create.
        let forEachStoredKey: @Sendable @concurrent (_ body: @escaping @Sendable (Key) -> Void) async throws -> Void

        package init(
            session: @escaping @Sendable (Key) -> GrantSessionMaker,
            forEachStoredKey:
                @escaping @Sendable @concurrent (_ body: @escaping @Sendable (Key) -> Void) async throws -> Void
        ) {
            self.session = session
            self.forEachStoredKey = forEachStoredKey
        }
    }

    /// Creates the table; keys share one grant, or each key shares its own with other processes.
    package init(
        keepingIdle limit: Int, policy: (@Sendable (Key) -> RefreshPolicy)?, grant: (@Sendable (Key) -> Key)?,
        stores: (any TokenStores<Key>)?, sharing: KeySharing?,
        environment: TokenService.Environment, onDiscard: (@Sendable (Key, DiscardedGrant) async -> Void)?,
        loader: @escaping @Sendable (Key) throws -> any TokenLoader
    ) {
        let clock = ServiceClock.opened(environment.clock)
        let hub = EventHub<KeyEvent<Key>>()
        let registry = KeyRegistry<Key, TokenService>(keepingIdle: limit, clock: clock, hub: hub)
        self.registry = registry
        // No caller uses a grant's service, and the keys' own services announce its loads and sign-ins, so only its store's
        // failures are announced. Its generation grows with each refresh token and isn't the key's.
        grants = KeyRegistry(keepingIdle: limit, clock: clock, hub: hub) { [executor = environment.executor] event, key in
            guard event.name == .storeFailed else { return }
            guard let service = registry.service(of: key) else { return registry.announce(event.with(generation: 0), of: key) }
            Task.detached(on: executor) { await service.announce(ofOther: event) }
        }
        self.stores = stores
        self.sharing = sharing
        self.environment = environment
        self.policy = policy
        self.grant = grant
        self.onDiscard = onDiscard
        self.loader = loader
    }

    /// Creates the services' table for one closure that gets every key's new token, and whose second parameter is the token to
    /// replace.
    ///
    /// `isRepeatable` says whether another load may start while one that took too long still runs; see
    /// `TokenLoader.isRepeatable`. The other parameters are those of
    /// ``init(keepingIdle:policy:grant:stores:environment:onDiscard:loader:)``.
    public convenience init(
        keepingIdle limit: Int = 1_000,
        policy: (@Sendable (Key) -> RefreshPolicy)? = nil,
        grant: (@Sendable (Key) -> Key)? = nil,
        stores: (any TokenStores<Key>)? = nil,
        environment: TokenService.Environment = TokenService.Environment(),
        onDiscard: (@Sendable (Key, DiscardedGrant) async -> Void)? = nil,
        isRepeatable: Bool = false,
        loader: @escaping @Sendable @concurrent (_ key: Key, _ previous: AccessToken?) async throws -> AccessToken
    ) {
        self.init(
            keepingIdle: limit, policy: policy, grant: grant, stores: stores, environment: environment, onDiscard: onDiscard,
            loader: { key in ClosureTokenLoader(isRepeatable: isRepeatable) { try await loader(key, $0) } })
    }

    /// The service of a key, created if there is none.
    ///
    /// Synchronous: a lock and a dictionary lookup, without an allocation, if the service exists. Keep the service or ask
    /// for it each time, as you like: as long as anything holds it, you get the same one.
    @inlinable
    public subscript(key: Key) -> TokenService {
        keptService(of: key) ?? findOrMake(key)
    }

    /// Returns the service of a key, or that of a wider key if only that one has a valid token.
    ///
    /// For scopes or audiences of which one includes others: a token for "read write" serves a request that needs "read".
    ///
    /// ```swift
    /// let tokens = services.service(of: ["read"], orOfWider: { $0.isSuperset(of: ["read"]) })
    /// ```
    ///
    /// If no wider key has a token, the key's own service loads one as usual. Use the service that you get for the whole request:
    /// a refusal, a sign-in or a sign-out through it is one of the key that it belongs to. The next call may return another. It
    /// takes as long as there are keys with services, unless this key has a token.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - isWider: Whether another key's tokens do for this one, too. Called outside all locks, on the caller's thread.
    public func service(of key: Key, orOfWider isWider: (Key) -> Bool) -> TokenService {
        if let own = keptService(of: key), own.cachedToken != nil { return own }
        // With the services, so that none is released under the lock.
        let current = registry.withTable { $0.current }
        var found: (key: Key, service: TokenService, left: Duration)?
        for other in current.keys where other != key && isWider(other) {
            guard let service = registry.service(of: other), let token = service.cachedToken else { continue }
            let left = service.timeLeft(of: token) ?? .seconds(Int64.max)
            if left > found?.left ?? .zero { found = (other, service, left) }
        }
        guard let found else { return self[key] }
        // This counts as a use of the wider key.
        return keptService(of: found.key) ?? found.service
    }

    /// The service of a key if it is kept; used by each hit.
    ///
    /// Inlinable, so that the program's own module compiles the lookup for its type of key: with generic code a hit through a key
    /// took almost three times as long. What doesn't depend on the key isn't inlined.
    @inlinable
    func keptService(of key: Key) -> TokenService? {
        registry.keptService(of: key)
    }

    @inlinable
    func findOrMake(_ key: Key) -> TokenService {
        registry.findOrMake(key) { makeService(key, tether: $0, stamp: $1) }
    }

    @usableFromInline
    func makeService(_ key: Key, tether: ServiceTether, stamp: Int) -> TokenService {
        let loader = madeLoader(key), policy = policy?(key) ?? defaultPolicy, clock = registry.clock
        var store: (any TokenStore)?, session: (any GrantSession)?, share: GrantShare?
        if let grant {
            share = GrantShare(in: lentGrant(grant(key)), loader, policy)
        } else if let stores {
            store = stores.store(for: key)
        } else if let sharing {
            session = sharing.session(key)(clock, environment(stamp))
        }
        let service = TokenService(
            policy: policy, environment: environment, clock: clock, seed: seed(stamp), loader: share ?? loader,
            ties: ServiceTies(store, session: session, onDiscard: discard(key), tether: tether, lender: share),
            isDrained: isDrained.withLock { $0 })
        share?.attach(to: service)
        return service
    }

    private func madeLoader(_ key: Key) -> any TokenLoader {
        do { return try loader(key) } catch {
            return ClosureTokenLoader(isRepeatable: false) { [loader] in try await loader(key).loadToken(replacing: $0) }
        }
    }

    func lentGrant(_ key: Key) -> LentGrant {
        grants.findOrMake(key) { tether, stamp in
            LentGrant(
                store: stores?.store(for: key), environment: environment(stamp), clock: registry.clock,
                onDiscard: discard(key), tether: tether)
        }
    }

    /// Gives each service its own seed, so that not all keys ask the server at the same moment.
    private func seed(_ stamp: Int) -> UInt64 { environment.seed &+ UInt64(stamp) }

    private func environment(_ stamp: Int) -> TokenService.Environment {
        var environment = environment
        environment.seed = seed(stamp)
        return environment
    }

    private func discard(_ key: Key) -> Discard? {
        guard let onDiscard else { return nil }
        return { await onDiscard(key, $0) }
    }
}
