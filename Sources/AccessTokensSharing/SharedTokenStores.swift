public import AccessTokens

/// Where the services of `TokenServices` share their grants with other processes: a record for each key.
///
/// `TokenServices` releases a key's service when it hasn't been used for a while; the record stays. A sign-out of an account must
/// reach such records too, so the stores can name their keys: `forEachStoredKey(_:)`.
public protocol SharedTokenStores<Key>: StoredKeys {
    /// Returns the store of a key; different keys have different records.
    ///
    /// Called each time that a service is made, on any thread. Calls may run at the same time, even for the same key. Only make
    /// the store here: don't read or write anything.
    ///
    /// - Parameter key: The key.
    func store(for key: Key) -> any SharedTokenStore
}
