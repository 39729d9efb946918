import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An error of a ``TokenLoader`` or a ``TokenStore`` that says how to recover from it.
///
/// The service treats any other error as transient: it tries again, with growing pauses. ``TokenStore/load()`` says what it does if
/// waiting doesn't make a store readable.
public protocol TokenLoadFailure: Error {
    /// How to recover from this failure: by waiting, by a new sign-in, or by a change of the program or its registration.
    var remedy: TokenServiceError.Remedy { get }

    /// How long the server asked to wait before the next attempt; `nil` if it didn't.
    ///
    /// Honoured up to an hour, whatever the service's own pause would be. Source: RFC 9110 §10.2.3.
    var retryAfter: Duration? { get }

    /// Whether the load's request may still be under way, or the server may still be working on it.
    ///
    /// A service that shares a grant, and knows the server's grace period, then presents the refresh token once more before the load
    /// fails. Return `false` if nothing was sent, or if the server has responded. The default is `true` if the remedy is ``TokenServiceError/Remedy/retry`` and there is no
    /// ``retryAfter``. An error that isn't a `TokenLoadFailure` counts as `true`.
    var mayBeUnderWay: Bool { get }

    /// A short name of what went wrong, such as `invalid_grant`, for a line in a log; `nil` if there is none.
    ///
    /// It must not contain a secret. Control characters are escaped and long names cut when it is printed.
    var logCode: String? { get }
}

/// The error of one of our own stores, which may have done what was asked all the same.
package protocol StoreFailure: TokenLoadFailure {
    var tookEffect: Bool { get }
}

extension TokenLoadFailure {
    /// By default `nil`: the server didn't ask for a wait.
    public var retryAfter: Duration? { nil }

    /// By default `true` unless the error shows that the server has responded.
    public var mayBeUnderWay: Bool { remedy == .retry && retryAfter == nil }

    /// By default `nil`: there is no name.
    public var logCode: String? { nil }
}

/// A load that failed after the server had replaced the refresh token: what to keep, and why the load failed.
///
/// Throw it from a ``TokenLoader`` when a response has a new refresh token but no usable access token. The service keeps the
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

    /// Always `false`, since the server has responded.
    public var mayBeUnderWay: Bool { false }

    /// The reason's own name.
    public var logCode: String? { (reason as? any TokenLoadFailure)?.logCode }
}

extension SalvagedGrant: Redacted, DescribedError {
    /// The reason; never the grant.
    package var text: String { "\(reason)" }
}
