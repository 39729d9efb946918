public import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An error of a ``TokenLoader`` that says how to recover from it.
///
/// The service treats any other error as transient: it tries again, with growing pauses.
public protocol TokenLoadFailure: Error {
    /// How to recover from this failure: by waiting, by a new sign-in, or by a change of the program or its registration.
    var remedy: TokenServiceError.Remedy { get }

    /// How long the server asked to wait before the next attempt; `nil` if it didn't.
    ///
    /// Honoured up to an hour, whatever the service's own pause would be. Source: RFC 9110 §10.2.3.
    var retryAfter: Duration? { get }

    /// Whether the load's request may still be under way, or the server may still be working on it.
    ///
    /// Services that share a grant don't present its refresh token again meanwhile. Return `false` if nothing was sent, or if the
    /// server has answered. The default is `true` if the remedy is ``TokenServiceError/Remedy/retry`` and there is no
    /// ``retryAfter``. An error that isn't a `TokenLoadFailure` counts as `true`.
    var mayBeUnderWay: Bool { get }

    /// A short name of what went wrong, such as `invalid_grant`, for a line in a log; `nil` if there is none.
    ///
    /// It must not contain a secret. Control characters are escaped and long names cut when it is printed.
    var logCode: String? { get }
}

extension TokenLoadFailure {
    /// By default `nil`: the server didn't ask for a wait.
    public var retryAfter: Duration? { nil }

    /// By default `true` unless the error shows that the server has answered.
    public var mayBeUnderWay: Bool { remedy == .retry && retryAfter == nil }

    /// By default `nil`: there is no name.
    public var logCode: String? { nil }
}

extension TokenServiceError {
    /// How to recover from a failure to get a token.
    public struct Remedy: Sendable, Hashable, Described {
        /// Waiting helps: the network failed, the server was busy, or its answer was unreadable.
        ///
        /// After the first failure the next caller's load starts at once; after that, the pauses grow.
        public static let retry = Remedy(text: "retry")

        /// A new sign-in helps: the grant itself is refused (`invalid_grant`), or the user signed out.
        ///
        /// After a refused grant the service doesn't ask the server again until ``TokenService/replace(with:)``,
        /// ``TokenService/reset()`` or ``TokenService/retryNow()``.
        public static let signIn = Remedy(text: "signIn")

        /// The client's own credentials or registration must change (`invalid_client`).
        ///
        /// The service tries again with the longest pause, so that a server program recovers without a restart.
        public static let clientRegistration = Remedy(text: "clientRegistration")

        /// A new sign-in or corrected credentials help: the server refused without saying whether it meant the grant or the
        /// client.
        ///
        /// The service tries again with the longest pause. The third such refusal in a row counts as a refused grant, with the
        /// remedy ``signIn``, so that a program learns that its session is dead.
        public static let signInOrRegistration = Remedy(text: "signInOrRegistration")

        /// The program or its configuration must change: neither time nor a new sign-in helps.
        ///
        /// The service tries again with the longest pause.
        public static let programChange = Remedy(text: "programChange")

        package let text: String
    }
}

/// A load that failed after the server had replaced the refresh token: what to keep, and why the load failed.
///
/// Throw it from a ``TokenLoader`` when an answer has a new refresh token but no usable access token. The service keeps the
/// grant for the next load, saves it, and treats ``reason`` as the load's error. Callers and events get the reason alone, so
/// no error that leaves the service contains the grant.
///
/// Each further attempt spends a refresh token. So callers get the error for a minute, or for the server's `Retry-After`
/// (``retryAfter``) if there is one, even if it is shorter.
public struct SalvagedGrant: TokenLoadFailure {
    /// The `previous` of the next load: a token with the new refresh token.
    public let grant: AccessToken

    /// Why there is no access token.
    public let reason: any Error

    /// Creates the pair.
    ///
    /// - Parameters:
    ///   - grant: The `previous` of the next load.
    ///   - reason: Why there is no access token.
    public init(_ grant: AccessToken, reason: any Error) {
        self.grant = grant
        // A grant inside the reason would leave the service with the error.
        self.reason = (reason as? SalvagedGrant)?.reason ?? reason
    }

    /// The reason's own remedy.
    public var remedy: TokenServiceError.Remedy { (reason as? any TokenLoadFailure)?.remedy ?? .retry }

    /// The reason's own `retryAfter`.
    public var retryAfter: Duration? { (reason as? any TokenLoadFailure)?.retryAfter }

    /// Always `false`, since the server has answered.
    public var mayBeUnderWay: Bool { false }

    /// The reason's own name.
    public var logCode: String? { (reason as? any TokenLoadFailure)?.logCode }
}

extension SalvagedGrant: Redacted, DescribedError {
    /// The reason; never the grant.
    package var text: String { "\(reason)" }
}
