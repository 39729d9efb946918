public import AccessTokens
import TokenServiceConcurrency

/// A failed load with a remedy of the test's choice, and the time that the server asked to wait.
///
/// `ScriptedFailure()` is transient, such as a network failure or a busy server. After `ScriptedFailure(.signIn)`, a refused
/// grant, only a new sign-in helps; after `ScriptedFailure(.clientRegistration)`, refused client credentials, only a change of
/// the client's registration.
public struct ScriptedFailure: TokenLoadFailure, Hashable {
    package static let transient = ScriptedFailure()
    package static let grantRefused = ScriptedFailure(.signIn)
    package static let clientRefused = ScriptedFailure(.clientRegistration)

    /// How to recover from the failure.
    public let remedy: TokenServiceError.Remedy

    /// How long the server asked to wait before the next attempt; `nil` if it didn't.
    public let retryAfter: Duration?

    package let message: String

    /// The message, as a log shows it.
    public var logCode: String? { message }

    /// Creates a failure.
    ///
    /// - Parameters:
    ///   - remedy: How to recover from the failure.
    ///   - retryAfter: How long the server asked to wait before the next attempt; `nil` if it didn't.
    ///   - message: A text by which tests and logs recognise the failure; `nil`: `temporarily unavailable`, `invalid_grant` or
    ///     `invalid_client`, depending on the remedy, or `scripted failure` for any other remedy.
    public init(_ remedy: TokenServiceError.Remedy = .retry, retryAfter: Duration? = nil, message: String? = nil) {
        self.remedy = remedy
        self.retryAfter = retryAfter
        self.message = message ?? Self.message(for: remedy)
    }

    private static func message(for remedy: TokenServiceError.Remedy) -> String {
        switch remedy {
        case .retry: "temporarily unavailable"
        case .signIn: "invalid_grant"
        case .clientRegistration: "invalid_client"
        default: "scripted failure"
        }
    }
}

extension ScriptedFailure: Described {
    package var text: String { message }
}
