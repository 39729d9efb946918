import AccessTokens
import AccessTokensKeys
import TokenServiceConcurrency

/// Where the services of `TokenServices` share their grants with other processes: a record for each key.
///
/// `TokenServices` releases a key's service when it hasn't been used for a while; the record stays. A sign-out of an account must
/// reach such records too, so the stores can name their keys: ``forEachStoredKey(_:)``.
public protocol SharedTokenStores<Key>: Sendable {
    /// The type of the keys.
    associatedtype Key: Hashable & Sendable

    /// Returns the store of a key; different keys have different records.
    ///
    /// Called each time that a service is made, on any thread. Calls may run at the same time, even for the same key. Only make
    /// the store here: don't read or write anything.
    ///
    /// - Parameter key: The key.
    func store(for key: Key) -> any SharedTokenStore

    /// Returns the keys that have a record, in any order, including those that are signed out.
    @concurrent func storedKeys() async throws -> [Key]

    /// Calls `body` with each key that has a record, in any order, as soon as the key is found.
    ///
    /// `TokenServices.reset(where:)` calls it once, and signs out each key as soon as it's named. It waits at most 5 s for each
    /// next key. The default implementation names the keys of ``storedKeys()``, which then has 5 s for all of them.
    ///
    /// - Parameter body: Called with each key; returns at once.
    @concurrent func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async throws
}

extension SharedTokenStores {
    /// Calls `body` with the keys of ``storedKeys()``, all at once.
    ///
    /// - Parameter body: Called with each key.
    @concurrent public func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async throws {
        for key in try await storedKeys() { body(key) }
    }
}
