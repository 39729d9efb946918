import TokenServiceConcurrency

/// A collection of stores that can name the keys that have something stored.
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
    /// Called each time that a service is made, on any thread. Calls may run at the same time, even for the same key. Only make
    /// the store here: don't read or write anything.
    ///
    /// - Parameter key: The key.
    func store(for key: Key) -> any TokenStore
}
