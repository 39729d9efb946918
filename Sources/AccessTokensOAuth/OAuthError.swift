public import AccessTokens
public import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Why an authorization server gave no token, or did not revoke one.
///
/// It conforms to `TokenLoadFailure`, so that a `TokenService` knows whether trying again can help. What the server wrote is
/// kept short, in one line, without control characters and without the secrets that it may have echoed.
public struct OAuthError: TokenLoadFailure, Sendable {
    /// What went wrong, as a value to compare.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The loader's configuration is invalid; nothing was sent.
        public static let invalidConfiguration = Code(description: "invalidConfiguration")
        /// There is no refresh token to load with: no user has signed in since the start or the last sign-out, or it has expired;
        /// nothing was sent.
        public static let notSignedIn = Code(description: "notSignedIn")
        /// What authenticates the client, or the grant, could not be made or read; nothing was sent.
        public static let credentialsUnavailable = Code(description: "credentialsUnavailable")
        /// What a browser came back with doesn't answer this sign-in: its state or its issuer is another; nothing was sent.
        public static let callbackMismatch = Code(description: "callbackMismatch")
        /// The user did not sign in on the other device in time.
        public static let signInExpired = Code(description: "signInExpired")
        /// The server could not be reached, or the connection ended before its answer did.
        public static let connectionFailed = Code(description: "connectionFailed")
        /// The answer was not complete within the transport's time limit.
        public static let timedOut = Code(description: "timedOut")
        /// The server answered with an error: an OAuth one, or a status other than success.
        public static let refused = Code(description: "refused")
        /// The server redirected the request, which is not followed with credentials (RFC 9700 §4.12).
        public static let redirected = Code(description: "redirected")
        /// The server's answer is not a token response: HTML, empty, cut off, too long, members missing or of wrong types.
        public static let unreadableResponse = Code(description: "unreadableResponse")
        /// The token is of a type that this client cannot use and so must not (RFC 6749 §7.1).
        public static let unsupportedTokenType = Code(description: "unsupportedTokenType")

        /// The code's name, for logs and metrics.
        public let description: String
    }

    /// The error of a load that has nothing to present: no user has signed in.
    ///
    /// For the closure of a ``GrantLoader``.
    public static var signInNeeded: OAuthError { OAuthError(.notSignedIn) }

    /// What went wrong.
    public var code: Code { cause.code }

    /// The server's error code, such as `invalid_client`; `nil` if it sent none (RFC 6749 §5.2).
    public internal(set) var error: String?

    /// The server's `error_description`, for developers and made safe to print; `nil` if it sent none (RFC 6749 §5.2).
    public internal(set) var serverDescription: String?

    /// The server's error code, else the code: what a line in a log says.
    public var logCode: String? { error ?? code.description }

    /// The HTTP status code; `nil` if there was no answer.
    public internal(set) var status: Int?

    /// How long the server asked to wait, at most ten years; `nil` if it didn't (RFC 9110 §10.2.3).
    public internal(set) var retryAfter: Duration?

    /// What can end the failure: time, a new sign-in, or a change of the client's registration.
    public internal(set) var remedy: TokenServiceError.Remedy = .retry

    /// The transport's own error, if it was one.
    public internal(set) var underlying: (any Error)?

    /// What went wrong, with what only that has: in our own words, or made safe.
    private let cause: Cause

    init(_ cause: Cause) {
        self.cause = cause
        switch cause {
        case .invalidConfiguration, .unsupportedTokenType: remedy = .clientRegistration
        case .notSignedIn, .refreshTokenExpired, .callbackMismatch, .signInExpired: remedy = .signIn
        default: break
        }
    }

    enum Cause: Sendable {
        case invalidConfiguration(String)
        case notSignedIn
        case refreshTokenExpired(Date)
        case credentialsUnavailable(String)
        case callbackMismatch(String)
        case signInExpired
        case connectionFailed(String)
        case timedOut(after: Duration)
        case refused
        case redirected
        case unreadableResponse(String)
        case unsupportedTokenType(String)

        fileprivate var code: Code {
            switch self {
            case .invalidConfiguration: .invalidConfiguration
            case .notSignedIn, .refreshTokenExpired: .notSignedIn
            case .credentialsUnavailable: .credentialsUnavailable
            case .callbackMismatch: .callbackMismatch
            case .signInExpired: .signInExpired
            case .connectionFailed: .connectionFailed
            case .timedOut: .timedOut
            case .refused: .refused
            case .redirected: .redirected
            case .unreadableResponse: .unreadableResponse
            case .unsupportedTokenType: .unsupportedTokenType
            }
        }
    }
}

extension OAuthError: Redacted, DescribedError {
    /// What went wrong and what to do about it; never a secret.
    public var description: String {
        switch cause {
        case .invalidConfiguration(let problem): "The configuration is invalid, so nothing was sent: \(problem)."
        case .notSignedIn: "There is no refresh token: no user is signed in, and nothing was sent."
        case .refreshTokenExpired(let end):
            "The refresh token expired at \(end.formatted(.iso8601)): sign in again. Nothing was sent."
        case .credentialsUnavailable(let problem): "Nothing was sent: \(problem)."
        case .callbackMismatch(let problem):
            "The callback doesn't answer this sign-in: \(problem). Nothing of it was used; sign in again."
        case .signInExpired: "The time for the sign-in is over. Begin another one."
        case .connectionFailed(let problem): "The authorization server could not be reached: \(problem)."
        case .timedOut(let limit): "The authorization server did not answer completely within \(limit). Try again later."
        case .redirected:
            "The authorization server redirected the request (\(statusText)), which would give the client's credentials to "
                + "another address: configure the endpoint's final URL."
        case .unreadableResponse(let problem):
            "The authorization server's answer (\(statusText)) is not a token response: \(problem). "
                + "Check the token endpoint's URL."
        case .unsupportedTokenType(let type):
            "The authorization server issued a token of type \(type): have it issue a type that this client accepts."
        case .refused: "The authorization server refused the request: \(serversWords). \(advice)"
        }
    }

    private var statusText: String { status.map { "status \($0)" } ?? "no status" }

    private var serversWords: String {
        let error = error.map { "\($0), \(statusText)" } ?? statusText
        return serverDescription.map { "\(error), \"\($0)\"" } ?? error
    }

    private var advice: String {
        switch remedy {
        case .signIn: "The grant is no longer valid: sign in again."
        case .signInOrRegistration:
            "Either the grant is no longer valid: sign in again; or the client's id, secret or authentication "
                + "method is not what the server has registered."
        case .clientRegistration:
            "Check the client's id, secret, authentication method, scope and grants against its registration."
        default:
            if let retryAfter {
                "Try again in \(retryAfter)."
            } else if let status, (400..<500).contains(status), status != 408, status != 429 {
                "Check the endpoint's URL and what is sent to it."
            } else {
                "Try again later."
            }
        }
    }
}
