import TokenServiceConcurrency

/// A user of etcd, with the password with which the store fetches authentication tokens.
///
/// Only the request that fetches a token contains the password: no description, dump, mirror or error shows it.
public struct EtcdUser: Sendable, Hashable {
    /// The user's name.
    package let name: String

    let password: String

    /// Creates a user.
    ///
    /// Give it a role that may read and write the one key of the store, and nothing else.
    ///
    /// - Parameters:
    ///   - name: The user's name.
    ///   - password: The user's password.
    public init(name: String, password: String) {
        self.name = name
        self.password = password
    }
}

extension EtcdUser: Redacted {
    package var text: String { "EtcdUser(\(name))" }
}
