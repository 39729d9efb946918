public import AccessTokens
public import AccessTokensKeys

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// How a service shares its grant with others; all services that share one record should use the same options.
public struct TokenSharing: Sendable {
    /// How long a silent process's mark is respected.
    ///
    /// A process marks the record before it presents the refresh token. If it neither saves nor fails, it may have died, or it
    /// may still be waiting for its response. Presenting the token a second time ends the session at a server without a grace
    /// period, if the first request got its response; not presenting it leaves the fleet without a token. A load that spends no refresh
    /// token doesn't wait that long for a silent process, whatever the doubt.
    public struct Doubt: Sendable, Hashable {
        enum Kind: Hashable {
            case standard, never
            case after(Duration)
        }

        let kind: Kind

        /// Twice the longest exchange that the mark allows.
        public static let standard = Doubt(kind: .standard)

        /// A mark is respected until its holder removes it, or is known to have died, or a user signs in.
        public static let never = Doubt(kind: .never)

        /// The given time, but no less than the longest exchange that the mark allows.
        public static func after(_ duration: Duration) -> Doubt { Doubt(kind: .after(duration)) }

        /// Returns how long to wait for a mark's holder, counted from when the mark was written or first seen; `nil`: without a
        /// limit.
        func patience(with mark: GrantRecord.Mark) -> Duration? {
            // The limit may be another program's, which says how long it waits by any number.
            let limit = RefreshPolicy.counted(mark.limit)
            return switch kind {
            case .standard: limit * 2
            case .never: nil
            case .after(let duration): max(RefreshPolicy.counted(duration), limit)
            }
        }
    }

    let transportLimit: Duration
    let doubt: Doubt
    let serverGrace: Duration?
    let checkEvery: Duration?
    let seal: (@Sendable (Data) throws -> Data)?
    let open: (@Sendable (Data) throws -> Data)?

    /// Creates the options.
    ///
    /// - Parameters:
    ///   - transportLimit: How long a load may still be under way after `RefreshPolicy(loadTimeout:)`; 30 s.
    ///
    ///     That limit doesn't end a load that must not be repeated. Give the transport its own limit, no longer than the sum
    ///     of both.
    ///   - doubt: How long a silent process's mark is respected.
    ///   - serverGrace: How long the server accepts a refresh token again after it has replaced it, its *grace period*; `nil`: not
    ///     at all.
    ///
    ///     Only state what the server's documentation or configuration says, and the shorter time if it may vary. With it, a load
    ///     that has lost the response asks once more. And if the period is at least ten seconds, a service waits for a silent holder
    ///     whose death the store can't see only until shortly before the period has passed since the mark. In return a load that is
    ///     merely slow must send in time: if the limits add up to more than that wait, loads get less time, of which half is for
    ///     sending (`LoadTime.check()`). So the transport's own limit must be at most 45 % of the period.
    ///   - checkEvery: How often callers check whether another service has signed out or brought a later token; `nil`: only when
    ///     they need a token.
    ///
    ///     Without it a service reads the record when it has no good token, and in the soft window before its token expires. So it
    ///     may hand out a token until then although another service has signed out. With it, a caller that gets a good token, an
    ///     interval after the record was last read, also starts one read in the background. The caller doesn't wait for it. A
    ///     sign-out found there ends the session here: its event is `TokenEvent.Name.reset`. A later token is adopted
    ///     (`TokenEvent.Name.restored`). A failed read changes nothing; the next caller an interval later starts another.
    ///
    ///     Without callers a service reads nothing, since it has no timer. Intervals below one second are treated as one second.
    ///   - seal: Encrypts a record before it is written; `nil`: the store gets the plain record.
    ///   - open: Decrypts what `seal` encrypted; an error is treated as one of the store's, and the record is left as it is.
    public init(
        transportLimit: Duration = .seconds(30),
        doubt: Doubt = .standard,
        serverGrace: Duration? = nil,
        checkEvery: Duration? = nil,
        seal: (@Sendable (Data) throws -> Data)? = nil,
        open: (@Sendable (Data) throws -> Data)? = nil
    ) {
        self.transportLimit = RefreshPolicy.counted(transportLimit)
        self.doubt = doubt
        self.serverGrace = serverGrace.map { max($0, .zero) }
        // At least the pause between store checks, and small enough that no sum overflows.
        self.checkEvery = checkEvery.map { min(max($0, RefreshPolicy.checkPause), RefreshPolicy.longestLifetime) }
        self.seal = seal
        self.open = open
    }
}

extension TokenService {
    /// Creates a service that shares its grant with others: in this process, in others, or on other hosts.
    ///
    /// All of them use the same record, wait for one load, and adopt its token. A refresh token is presented only after the
    /// record says so, and the server's response is saved before any caller gets it. Read *Several processes, one sign-in* first: a
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

extension TokenServices {
    /// Creates the services' table for keys whose grants other processes use, too, without any service.
    ///
    /// Each key has its own record, and so its own grant. Everything that is true of one service over a shared store
    /// (`TokenService.init(policy:sharedStore:sharing:environment:onDiscard:loader:)`) is true of each key. A service is not
    /// released before its record has the last sign-in or sign-out, nor while others respect its mark there. `reset(where:)`
    /// writes a sign-out into the record of each matching key, even if another process wrote the record.
    ///
    /// - Parameters:
    ///   - limit: How many idle services are kept, at least 0.
    ///   - policy: Each key's policy; `nil`: the default policy for all. Called like `loader`.
    ///   - sharedStores: Store the keys' grants.
    ///   - sharing: How long other processes' marks are respected, how often callers check for a sign-out, and how records are
    ///     encrypted; for all keys.
    ///   - environment: Clocks, jitter and executors of all services; tests replace them.
    ///   - onDiscard: Called with each token that a service gives up although its grant may still be good at the server.
    ///   - loader: Creates a key's loader. Called whenever a key's service is created, on the caller's thread, outside all locks.
    ///     Calls may run at the same time for several keys, or twice for one; then one of the two loaders is not used. It must
    ///     not take long. If it throws, the key's load fails with that error, and each further load calls it again.
    public convenience init(
        keepingIdle limit: Int = 1_000,
        policy: (@Sendable (Key) -> RefreshPolicy)? = nil,
        sharedStores: any SharedTokenStores<Key>,
        sharing: TokenSharing = TokenSharing(),
        environment: TokenService.Environment = TokenService.Environment(),
        onDiscard: (@Sendable (Key, DiscardedGrant) async -> Void)? = nil,
        loader: @escaping @Sendable (Key) throws -> any TokenLoader
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
