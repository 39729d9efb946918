public import AccessTokens
import TokenServiceConcurrency

/// Stores that last as long as the program: for tests.
public final class InMemoryTokenStores<Key: Hashable & Sendable>: TokenStores {
    private let stores = Lock<[Key: InMemoryTokenStore]>([:])

    /// Creates empty stores.
    public init() {}

    /// Returns the store of a key; the same one each time.
    ///
    /// - Parameter key: The key.
    public func store(for key: Key) -> any TokenStore {
        stores.withLock { stores in
            let store = stores[key] ?? InMemoryTokenStore()
            stores[key] = store
            return store
        }
    }

    /// Returns the keys whose stores have a token.
    @concurrent public func storedKeys() async -> [Key] {
        stores.withLock { $0 }.filter { $0.value.contents != nil }.map(\.key)
    }
}
