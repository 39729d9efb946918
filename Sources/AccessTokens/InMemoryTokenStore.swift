/// A store that lasts as long as the program: for tests, and for services that share a session.
public final class InMemoryTokenStore: TokenStore {
    private let stored: Lock<StoredToken?>

    /// Creates a store.
    ///
    /// - Parameter token: What it holds at first.
    public init(_ token: StoredToken? = nil) {
        stored = Lock(token)
    }

    /// What the store holds at this moment.
    public var contents: StoredToken? { stored.withLock { $0 } }

    /// Returns what was saved last.
    @concurrent public func load() async -> StoredToken? { contents }

    /// Keeps a token in place of the earlier one.
    ///
    /// - Parameter token: The token to keep.
    @concurrent public func save(_ token: StoredToken) async { stored.withLock { $0 = token } }

    /// Forgets the token.
    @concurrent public func remove() async { stored.withLock { $0 = nil } }
}
