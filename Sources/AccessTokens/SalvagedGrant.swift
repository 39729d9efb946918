#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A load that failed after the server had replaced the refresh token: what to keep, and why the load failed.
///
/// Throw it from a ``TokenLoader`` when an answer has a new refresh token but no usable access token. The service keeps the
/// grant for the next load, saves it, and treats ``reason`` as the load's error. Callers and events get the reason alone, so
/// no error that leaves the service contains the grant.
public struct SalvagedGrant: TokenLoadFailure {
    /// What the next load gets as `previous`: a token with the new refresh token.
    public let grant: AccessToken

    /// Why there is no access token.
    public let reason: any Error

    /// Creates the pair.
    ///
    /// - Parameters:
    ///   - grant: What the next load gets as `previous`.
    ///   - reason: Why there is no access token.
    public init(_ grant: AccessToken, reason: any Error) {
        self.grant = grant
        // Wrapped twice it would leave the service inside the error.
        self.reason = (reason as? SalvagedGrant)?.reason ?? reason
    }

    /// The reason's own remedy.
    public var remedy: TokenServiceError.Remedy { (reason as? any TokenLoadFailure)?.remedy ?? .retry }

    /// The reason's own wish.
    public var retryAfter: Duration? { (reason as? any TokenLoadFailure)?.retryAfter }

    /// The reason's own name.
    public var logCode: String? { (reason as? any TokenLoadFailure)?.logCode }
}

extension SalvagedGrant: LocalizedError {
    /// The same as ``description``.
    public var errorDescription: String? { description }
}

extension SalvagedGrant: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The reason; never the grant.
    public var description: String { "\(reason)" }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
