import TokenServiceConcurrency

/// Where a ``TokenService`` keeps its token between runs of the program.
///
/// The service calls one operation at a time, in the order in which it decided on them, in tasks that are never cancelled. So
/// nothing from before a sign-out is written after its ``remove()``. A ``load()`` precedes it, since the removed token has to be
/// revoked. A token is saved *before* callers get it, so that a rotated refresh token survives a crash. The service waits at most
/// 5 s for an operation. A slower one continues; until it ends no other begins, and nothing else waits for the store. Three times
/// `RefreshPolicy(loadTimeout:)` later, 95 s after it began with the default limit, the service considers its callback lost and
/// begins the next operation beside it. If a save or removal that counted as lost ends after all, it may have written last. Then
/// the service repeats its latest save or removal.
public protocol TokenStore: Sendable {
    /// Returns what was saved last.
    ///
    /// Called at the first miss or ``TokenService/signInState()``, before each load that spends a refresh token, since another service
    /// may have replaced it, and before a removal. It may take 5 s, and at first no longer than
    /// `RefreshPolicy(loadTimeout:)`. After that, callers get an error with the code `storeFailed`.
    ///
    /// - Returns: `nil` only if nothing is there. A store that cannot tell (locked, unreadable) throws: an error is tried again
    ///   later, while `nil` means that no user is signed in.
    /// - Throws: A ``TokenLoadFailure`` if waiting doesn't help. A service whose loads may be repeated then announces `storeFailed`
    ///   and loads, as if nothing were stored. Any other reports the error, and does what the remedy says: with the remedy `signIn`,
    ///   what is stored can't be used, and the user counts as signed out. A ``TokenLoadFailure/retryAfter`` of up to 60 s is the
    ///   pause before the next read.
    @concurrent func load() async throws -> StoredToken?

    /// Saves a token in place of the earlier one, atomically.
    ///
    /// If it throws, the service saves the token again after 1, 2, 4 … 60 s, when it is next used, and when the program drains it.
    /// A ``TokenLoadFailure/retryAfter`` lengthens the pause, to 60 s at most. If the error's remedy isn't `retry`, each pause is
    /// 60 s, and only the first such failure is announced.
    ///
    /// - Parameter token: The token to keep.
    @concurrent func save(_ token: StoredToken) async throws

    /// Forgets the token; not an error if there is none.
    @concurrent func remove() async throws
}

/// A store without a disk, for tests and `InMemoryTokenStores`.
package final class InMemoryTokenStore: TokenStore {
    private let stored: Lock<StoredToken?>

    package init(_ token: StoredToken? = nil) { stored = Lock(token) }

    package var contents: StoredToken? { stored.withLock { $0 } }

    @concurrent package func load() async -> StoredToken? { contents }
    @concurrent package func save(_ token: StoredToken) async { stored.withLock { $0 = token } }
    @concurrent package func remove() async { stored.withLock { $0 = nil } }
}

/// A collection of stores that can list the keys for which something is stored.
public protocol StoredKeys<Key>: Sendable {
    /// The type of the keys.
    associatedtype Key: Hashable & Sendable

    /// Calls `body` with each key that has something stored, in any order, as soon as the key is found.
    ///
    /// Shared grants that are signed out count, too. `TokenServices.reset(where:)` calls it once, and signs out each key as soon
    /// as it's named. It waits at most 5 s for each next key.
    ///
    /// - Parameter body: Called with each key; returns at once.
    @concurrent func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async throws
}

extension StoredKeys {
    /// Returns the keys of ``forEachStoredKey(_:)``, once all are found.
    @concurrent public func storedKeys() async throws -> [Key] {
        let keys = Lock<[Key]>([])
        try await forEachStoredKey { key in keys.withLock { $0.append(key) } }
        return keys.withLock { $0 }
    }
}

/// Where the services of `TokenServices` keep their tokens between runs of the program: a store for each key.
///
/// `TokenServices` releases a key's service when it hasn't been used for a while; the stored token stays. A sign-out of an
/// account must remove such tokens too, so the stores can name their keys: ``StoredKeys/forEachStoredKey(_:)``.
public protocol TokenStores<Key>: StoredKeys {
    /// Returns the store of a key; different keys have different stores.
    ///
    /// Equal keys must have the same store. Two strings with different bytes can be equal in Swift: `"caf\u{E9}"` and
    /// `"cafe\u{301}"`.
    ///
    /// Called whenever a service is created, on any thread. Calls may run at the same time, even for the same key. Only create
    /// the store here: don't read or write anything.
    ///
    /// - Parameter key: The key.
    func store(for key: Key) -> any TokenStore
}
