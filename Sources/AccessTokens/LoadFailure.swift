/// An error of a ``TokenLoader`` that knows what can be done about it.
///
/// Errors that don't conform are taken for transient: they are tried again with growing pauses.
public protocol LoadFailure: Error {
    /// What ends this failure: time, a new sign-in, or a change of the client's own registration.
    var remedy: LoadRemedy { get }

    /// How long the server asked to wait before the next attempt; `nil` if it didn't.
    ///
    /// Honoured up to ``RefreshPolicy/retryAfterLimit``. Source: RFC 9110 §10.2.3.
    var retryAfter: Duration? { get }
}

extension LoadFailure {
    /// No wish of the server's.
    public var retryAfter: Duration? { nil }
}

/// What can end a failure to load a token.
public struct LoadRemedy: Sendable, Hashable, CustomStringConvertible {
    /// Time: the network, a busy server, an unreadable answer.
    ///
    /// Tried again after a first failure at once, then with growing pauses.
    public static let retry = LoadRemedy(description: "retry")

    /// A new sign-in: the grant itself is refused (`invalid_grant`).
    ///
    /// The server is asked no more until ``TokenService/replace(with:)``, ``TokenService/reset()`` or ``TokenService/retryNow()``.
    public static let signIn = LoadRemedy(description: "sign in")

    /// A change of the client's own credentials or registration (`invalid_client`).
    ///
    /// Tried again with the longest pause, so that a server program heals without a restart.
    public static let clientRegistration = LoadRemedy(description: "client registration")

    /// The remedy's name, for logs.
    public let description: String
}
