/// Where the services of `TokenServices` keep their tokens between two runs of the program: a store for each key.
///
/// A store outlives its key's service, which is let go when it has not been used for a while. So a sign-out of an account has to
/// reach tokens whose services aren't there; ``forEachStoredKey(_:)`` is for that.
public protocol TokenStores<Key>: Sendable {
    /// What tells the services apart.
    associatedtype Key: Hashable & Sendable

    /// Returns the store of a key, which no other key has.
    ///
    /// Equal keys have the same one: two strings can be equal in Swift and have different bytes, as `"caf\u{E9}"` and `"cafe\u{301}"`.
    ///
    /// Called whenever a service is made, on any thread, and at the same moment for several keys or twice for one. It should only
    /// make the store, and touch nothing: the service calls the store when it needs it.
    ///
    /// - Parameter key: The key.
    func store(for key: Key) -> any TokenStore

    /// Returns the keys whose stores have a token, in any order.
    @concurrent func storedKeys() async throws -> [Key]

    /// Tells the keys whose stores have a token, in any order, each as soon as it is found.
    ///
    /// Called once for each `TokenServices.reset(where:)`, which waits for each key 5 s at most, and signs it out meanwhile. Without an
    /// implementation, they are those of ``storedKeys()``, which then has 5 s.
    ///
    /// - Parameter body: Called with each key; returns at once.
    @concurrent func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async throws
}

extension TokenStores {
    /// Tells the keys of ``storedKeys()``, all at once.
    ///
    /// - Parameter body: Called with each key.
    @concurrent public func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async throws {
        for key in try await storedKeys() { body(key) }
    }
}
