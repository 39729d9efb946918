#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Why a ``TokenService`` has no token for a caller.
///
/// A caller that is cancelled gets a `CancellationError` instead.
public struct TokenServiceError: Error, Sendable {
    /// What went wrong, as a value to compare.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The loader threw; ``TokenServiceError/underlying`` is its error.
        public static let loadFailed = Code(description: "loadFailed")
        /// The load took longer than ``RefreshPolicy/loadTimeout``, or one that did is still running.
        public static let loadTimedOut = Code(description: "loadTimedOut")
        /// The caller's own limit, given with `within:`, passed first; the load goes on for the others.
        public static let deadlineExceeded = Code(description: "deadlineExceeded")
        /// The service was reset (signed out) while the caller waited.
        public static let reset = Code(description: "reset")
        /// The loader returned a token whose lifetime had passed when it arrived.
        public static let tokenExpiredOnArrival = Code(description: "tokenExpiredOnArrival")
        /// The loader returned a token that was invalidated before.
        public static let tokenRejectedBefore = Code(description: "tokenRejectedBefore")
        /// Too many fresh tokens were invalidated one after the other: the resource server accepts none of them.
        public static let tooManyInvalidations = Code(description: "tooManyInvalidations")
        /// The store failed or took too long; ``TokenServiceError/underlying`` is its error.
        public static let storeFailed = Code(description: "storeFailed")
        /// A loader asked the service that it loads for: it would wait for itself.
        public static let loaderWaitsForItself = Code(description: "loaderWaitsForItself")

        /// The code's name, for logs and metrics.
        public let description: String
    }

    /// What went wrong.
    public let code: Code

    /// The loader's own error, if it was one.
    public let underlying: (any Error)?

    /// What can end the failure.
    public let remedy: TokenServiceError.Remedy

    /// The earliest moment, on the wall clock, at which the service asks the server again; `nil` if time won't help.
    ///
    /// Until then callers get this same error without a load.
    public internal(set) var retryAt: Date?

    /// The same moment on the service's own clock, which the state machine counts in.
    var retryOffset: Duration?

    package init(_ code: Code, underlying: (any Error)? = nil, remedy: Remedy? = nil) {
        self.code = code
        self.underlying = underlying
        self.remedy = remedy ?? Self.remedies[code] ?? .retry
    }

    /// What ends the failures that time does not.
    private static let remedies: [Code: Remedy] = [
        .reset: .signIn, .loaderWaitsForItself: .programChange, .tooManyInvalidations: .programChange,
    ]
}

/// A service whose loader uses another service passes that one's remedy on.
extension TokenServiceError: TokenLoadFailure {
    /// The cause's own name, or the code's.
    public var logCode: String? { (underlying as? any TokenLoadFailure)?.logCode ?? code.description }
}

extension TokenServiceError: LocalizedError {
    /// The same as ``description``.
    public var errorDescription: String? { description }
}

extension TokenServiceError: CustomStringConvertible {
    /// What went wrong and what to do about it, in a sentence; never a token.
    public var description: String {
        var text = explanation
        if let underlying { text += " Cause: \(LogText.sentence("\(underlying)"))" }
        if let retryAt { text += " Next attempt: \(retryAt)." }
        return text
    }

    private var explanation: String {
        switch code {
        case .loadFailed where remedy == .signIn:
            "The grant was refused for good: sign in again and call replace(with:)."
        case .loadFailed where remedy == .signInOrRegistration:
            "The grant or the client's own credentials were refused, and the server does not say which; the service tries "
                + "again, slowly."
        case .loadFailed where remedy == .programChange:
            "Loading a token failed in a way that only a change of the program can mend."
        case .loadFailed where remedy == .clientRegistration:
            "The client's own credentials were refused: correct them; the service keeps trying, slowly."
        case .loadFailed: "Loading a token failed."
        case .loadTimedOut: "The loader took too long: give its transport a limit below RefreshPolicy.loadTimeout."
        case .deadlineExceeded: "No token within the caller's own limit; the load goes on for others."
        case .reset: "The service was reset while the caller waited: sign in, then ask again."
        case .tokenExpiredOnArrival: "The loaded token had already expired: check its lifetime and the server's clock."
        case .tokenRejectedBefore: "The authorization server returned a token that was refused before."
        case .tooManyInvalidations:
            "Fresh tokens were refused one after the other: check audience and scope at the resource server."
        case .storeFailed: "The token store failed or took too long: see that it is unlocked and can be written."
        case .loaderWaitsForItself:
            "A loader asked its own service for a token and would wait for itself: send its request without one."
        default: code.description
        }
    }
}
