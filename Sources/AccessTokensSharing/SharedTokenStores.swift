import AccessTokens
import AccessTokensKeys
import TokenServiceConcurrency

/// Where the services of `TokenServices` share their grants with other processes: a record for each key.
///
/// A record outlives its key's service, which is let go when it has not been used for a while. So a sign-out of an account has to
/// reach records whose services aren't there; ``forEachStoredKey(_:)`` is for that.
public protocol SharedTokenStores<Key>: Sendable {
    /// What tells the services apart.
    associatedtype Key: Hashable & Sendable

    /// Returns the store of a key, whose record no other key has.
    ///
    /// Called whenever a service is made, on any thread, and at the same moment for several keys or twice for one. It should only
    /// make the store, and touch nothing: the service calls the store when it needs it.
    ///
    /// - Parameter key: The key.
    func store(for key: Key) -> any SharedTokenStore

    /// Returns the keys that have a record, in any order; also a sign-out leaves one.
    @concurrent func storedKeys() async throws -> [Key]

    /// Tells the keys that have a record, in any order, each as soon as it is found.
    ///
    /// Called once for each `TokenServices.reset(where:)`, which waits for each key 5 s at most, and signs it out meanwhile. Without an
    /// implementation, they are those of ``storedKeys()``, which then has 5 s.
    ///
    /// - Parameter body: Called with each key; returns at once.
    @concurrent func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async throws
}

extension SharedTokenStores {
    /// Tells the keys of ``storedKeys()``, all at once.
    ///
    /// - Parameter body: Called with each key.
    @concurrent public func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async throws {
        for key in try await storedKeys() { body(key) }
    }
}

/// Shared stores that last as long as the program: for tests.
public final class InMemorySharedTokenStores<Key: Hashable & Sendable>: SharedTokenStores {
    private let stores = Lock<[Key: InMemorySharedTokenStore]>([:])

    /// Creates stores without records.
    public init() {}

    /// Returns the store of a key; the same one each time.
    ///
    /// - Parameter key: The key.
    public func store(for key: Key) -> any SharedTokenStore {
        stores.withLock { stores in
            let store = stores[key] ?? InMemorySharedTokenStore()
            stores[key] = store
            return store
        }
    }

    /// Returns the keys that have a record.
    @concurrent public func storedKeys() async -> [Key] {
        stores.withLock { $0 }.filter { $0.value.contents != nil }.map(\.key)
    }
}
