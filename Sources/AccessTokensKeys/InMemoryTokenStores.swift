package import AccessTokens
import TokenServiceConcurrency

/// Stores that last as long as the program: for tests.
package final class InMemoryTokenStores<Key: Hashable & Sendable>: TokenStores {
    private let stores = Lock<[Key: InMemoryTokenStore]>([:])

    /// Creates empty stores.
    package init() {}

    /// Returns the store of a key; the same one each time.
    ///
    /// - Parameter key: The key.
    package func store(for key: Key) -> any TokenStore {
        stores.withLock { stores in
            let store = stores[key] ?? InMemoryTokenStore()
            stores[key] = store
            return store
        }
    }

    /// Calls `body` with each key whose store has a token.
    @concurrent package func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async {
        for (key, store) in stores.withLock({ $0 }) where store.contents != nil { body(key) }
    }
}
