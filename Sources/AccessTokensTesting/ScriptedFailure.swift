public import AccessTokens
import TokenServiceConcurrency

/// A failed load with a remedy of the test's choice, and the time that the server asked to wait.
public struct ScriptedFailure: TokenLoadFailure, Hashable {
    /// A failure that passes with time: the network, a busy server.
    public static let transient = ScriptedFailure(.retry, message: "temporarily unavailable")

    /// A refused grant (`invalid_grant`): only a new sign-in helps.
    public static let grantRefused = ScriptedFailure(.signIn, message: "invalid_grant")

    /// Refused client credentials (`invalid_client`): only a change of the client's registration helps.
    public static let clientRefused = ScriptedFailure(.clientRegistration, message: "invalid_client")

    /// How to recover from the failure.
    public var remedy: TokenServiceError.Remedy

    /// How long the server asked to wait before the next attempt; `nil` if it didn't.
    public var retryAfter: Duration?

    package let message: String

    /// The message, as a log shows it.
    public var logCode: String? { message }

    /// Creates a failure.
    ///
    /// - Parameters:
    ///   - remedy: How to recover from the failure.
    ///   - retryAfter: How long the server asked to wait before the next attempt; `nil` if it didn't.
    ///   - message: A text by which the test, and a log, recognises the failure.
    public init(_ remedy: TokenServiceError.Remedy = .retry, retryAfter: Duration? = nil, message: String = "scripted failure") {
        self.remedy = remedy
        self.retryAfter = retryAfter
        self.message = message
    }
}

extension ScriptedFailure: Described {
    package var text: String { message }
}
