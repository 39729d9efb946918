public import AccessTokens
package import AccessTokensHTTP
public import TokenServiceConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Why an authorization server gave no token, or did not revoke one.
///
/// It conforms to `TokenLoadFailure`, so that a `TokenService` knows whether trying again can help. The server's text is
/// shortened to one line, without control characters and without the secrets that it may have echoed.
public struct OAuthError: TokenLoadFailure, Sendable {
    /// The kind of error, as a value to compare.
    public struct Code: Sendable, Hashable, Described {
        /// The loader's configuration is invalid; nothing was sent.
        public static let invalidConfiguration = Code(text: "invalidConfiguration")
        /// There is no usable refresh token, so nothing was sent.
        ///
        /// No user has signed in since the start or the last sign-out, the server has issued none, or it is bound to another key.
        public static let notSignedIn = Code(text: "notSignedIn")
        /// The client's credentials or the grant could not be created or read; nothing was sent.
        public static let credentialsUnavailable = Code(text: "credentialsUnavailable")
        /// The callback doesn't belong to this sign-in: its state or issuer differs; nothing was sent.
        public static let callbackMismatch = Code(text: "callbackMismatch")
        /// The user did not sign in on the other device in time.
        public static let signInExpired = Code(text: "signInExpired")
        /// The server could not be reached, or the connection ended before the answer was complete.
        public static let connectionFailed = Code(text: "connectionFailed")
        /// The answer was not complete within the client's time limit.
        public static let timedOut = Code(text: "timedOut")
        /// The server answered with an error: an OAuth one, or a status other than success.
        public static let refused = Code(text: "refused")
        /// The server redirected the request, which is not followed with credentials (RFC 9700 §4.12).
        public static let redirected = Code(text: "redirected")
        /// The server's answer is not a token response: it is HTML, empty, truncated or too long, or members are missing or have
        /// wrong types.
        public static let unreadableResponse = Code(text: "unreadableResponse")
        /// The server's metadata can't be used: it belongs to another server, lacks a member, or isn't metadata at all.
        public static let invalidMetadata = Code(text: "invalidMetadata")
        /// The token is of a type that this client doesn't support and so must not use (RFC 6749 §7.1).
        public static let unsupportedTokenType = Code(text: "unsupportedTokenType")

        package let text: String
    }

    /// The error of a load without a grant, because no user has signed in.
    ///
    /// For the closure of a ``GrantLoader``.
    public static var signInNeeded: OAuthError { OAuthError(.notSignedIn) }

    /// The kind of error.
    public var code: Code { problem.code }

    /// The server's error code, such as `invalid_client`; `nil` if it sent none (RFC 6749 §5.2).
    public internal(set) var error: String?

    /// The server's `error_description`, for developers and made safe to print; `nil` if it sent none (RFC 6749 §5.2).
    public internal(set) var serverDescription: String?

    /// The server's error code, or else the code of this error.
    public var logCode: String? { error ?? code.description }

    /// The HTTP status code; `nil` if there was no answer.
    public package(set) var status: Int?

    /// How long the server asked to wait, at most ten years; `nil` if it didn't (RFC 9110 §10.2.3).
    ///
    /// An hour, unless the server says otherwise, where each attempt would spend a refresh token for a token that can't be used,
    /// such as one that isn't bound to the client's key.
    public internal(set) var retryAfter: Duration?

    /// How to recover: by waiting, a new sign-in, or a change of the client's registration.
    public internal(set) var remedy: TokenServiceError.Remedy = .retry

    /// The members of a refusal, such as `mfa_token` or `claims`; no text shows them.
    ///
    /// `nil` if the answer has none, has more than 64 KiB, or has issued a token all the same.
    public internal(set) var members: ResponseMembers?

    /// The transport's own error, if it was one.
    public internal(set) var underlying: (any Error)?

    /// The client and the server, for the text.
    package struct Asked: Sendable {
        let client, method, place: String
        /// Whether the server has registered the client at its own request.
        let isRegistered: Bool
        /// Whether the credentials' header has characters that the server must decode.
        var hasEncodings = false

        package init(_ url: URL, client: String = "", isRegistered: Bool = false, method: String = "") {
            self.client = ServerText.line(client)
            self.isRegistered = isRegistered
            self.method = method
            // A query may hold anything.
            place = ServerText.safe(String(url.absoluteString.prefix { $0 != "?" }), hiding: [])
        }
    }

    package var asked: Asked?

    /// A fact that may explain the refusal, such as clocks that differ.
    var note: String?

    /// Whether the server said, by its status or its code, that waiting helps.
    var isPassing = false

    /// Whether something before the server has answered, such as a firewall.
    var isForeign = false

    /// Whether the answer has an OAuth error or a token; else something other than the server may have answered.
    var isOAuth = true

    /// A code with its details; the texts are our own words or made safe.
    package enum Problem: Sendable {
        case invalidConfiguration(String)
        case notSignedIn
        case boundToAnotherKey
        case credentialsUnavailable(String)
        case callbackMismatch(String)
        case signInExpired
        /// The transport reported that nothing was sent.
        case notSent(String)
        case connectionFailed(String)
        case timedOut(Duration)
        case refused
        /// The server has refused an authorization request, in a callback.
        case signInRefused
        case registrationRefused
        /// The server demands a nonce that can't be used.
        case uselessNonce(String)
        case redirected
        case unreadableResponse(String)
        case unsupportedTokenType(String)
        /// The server ignored the proof.
        case unboundToken
        case invalidMetadata(String)

        fileprivate var code: Code {
            switch self {
            case .invalidConfiguration: .invalidConfiguration
            case .notSignedIn, .boundToAnotherKey: .notSignedIn
            case .credentialsUnavailable: .credentialsUnavailable
            case .callbackMismatch: .callbackMismatch
            case .signInExpired: .signInExpired
            case .notSent, .connectionFailed: .connectionFailed
            case .timedOut: .timedOut
            case .refused, .signInRefused, .registrationRefused, .uselessNonce: .refused
            case .redirected: .redirected
            case .unreadableResponse: .unreadableResponse
            case .unsupportedTokenType, .unboundToken: .unsupportedTokenType
            case .invalidMetadata: .invalidMetadata
            }
        }
    }

    private var problem: Problem

    package init(_ problem: Problem) {
        self.problem = problem
        switch problem {
        case .invalidConfiguration, .unsupportedTokenType, .unboundToken: remedy = .clientRegistration
        case .notSignedIn, .boundToAnotherKey, .callbackMismatch, .signInExpired: remedy = .signIn
        default: break
        }
    }
}

extension OAuthError: Redacted, DescribedError {
    /// The problem and its remedy; never a secret.
    package var text: String {
        switch problem {
        case .invalidConfiguration(let detail): "The configuration is invalid, so nothing was sent: \(detail)."
        case .notSignedIn: "There is no refresh token: no user is signed in, or the server gave none. Nothing was sent."
        case .boundToAnotherKey: "The refresh token is bound to a key other than the client's: sign in again. Nothing was sent."
        case .credentialsUnavailable(let detail): "The credentials are unavailable, so nothing was sent: \(detail)."
        case .callbackMismatch(let detail):
            "The callback doesn't belong to this sign-in: \(detail). It was ignored; sign in again."
        case .signInExpired:
            ["The user did not sign in in time. Begin another sign-in.", note].compactMap(\.self).joined(separator: " ")
        case .notSent(let detail): "\(server) could not be reached, so nothing was sent: \(detail)."
        case .connectionFailed(let detail):
            "\(server) gave no complete answer: \(detail). It may have received the request all the same."
        case .timedOut(let limit): "\(server) did not answer completely within \(limit.shown). Try again later."
        case .redirected:
            "\(server) redirected the request (\(statusText)), which would give the client's credentials to "
                + "another address: configure the endpoint's final URL."
        case .unreadableResponse(let detail):
            "\(server) returned an answer (\(statusText)) that is not a token response: \(detail). "
                + "Check the token endpoint's URL."
        // RFC 8693 §2.2.1.
        case .unsupportedTokenType("N_A"):
            "\(server) issued a token that isn't an access token (its type is N_A). If the exchange was for that, add N_A to the "
                + "client's acceptedTokenTypes; otherwise ask for an access token with requestedType."
        case .invalidMetadata(let detail): "\(detail)."
        case .unboundToken:
            "\(server) ignored the client's proof and issued a token that isn't bound to its key: it doesn't support DPoP, or not for "
                + "this client. Have it bind the tokens, or create the client without a proof."
        case .unsupportedTokenType(let type):
            "\(server) issued a token of type \(type), which this client doesn't accept: have it issue another type."
        case .uselessNonce(let detail):
            "\(server) demands a nonce in the proof (\(error ?? ""), \(statusText)), but sent no usable one. \(detail) "
                + "Nothing was spent."
        case .registrationRefused:
            "\(server) refused to register the client: \(serversWords). "
                + (remedy == .retry
                    ? pauseAdvice : "Check what the client says of itself, and whether the server registers anyone.")
        case .signInRefused:
            "\(server) refused the sign-in\(part(\.client)): \(serversWords). \(adviceOfSignIn)"
        case .refused:
            ["\(server) refused the request: \(serversWords).", note, advice].compactMap(\.self).joined(separator: " ")
        }
    }

    private var server: String { "The authorization server" + (asked.map { " at \($0.place)" } ?? "") }

    private var statusText: String { status.map { "status \($0)" } ?? "no status" }

    private var adviceOfSignIn: String {
        switch remedy {
        case .signIn: "The user said no, or must do something first: begin another sign-in only when the user asks for it."
        case .retry: "Try again later."
        case .signInOrRegistration:
            "Either the user must do something first, or the request doesn't fit the client's registration: begin another sign-in "
                + "only when the user asks for it."
        default:
            "Another sign-in won't help: check the request's scope, redirect URI and other parameters, and whether the client's "
                + "registration allows this kind of sign-in or demands a pushed one."
        }
    }

    private var serversWords: String {
        // A callback has no status.
        let status = status == nil && error != nil ? nil : statusText
        let error = [error, status].compactMap(\.self).joined(separator: ", ")
        return serverDescription.map { "\(error), \"\($0)\"" } ?? error
    }

    private func part(_ path: KeyPath<Asked, String>) -> String { asked.map { " (\($0[keyPath: path]))" } ?? "" }

    private var advice: String? {
        switch remedy {
        case .signIn where needsUser, .clientRegistration where needsUser:
            "A user must do something first, as the code says, or sign in again."
        case .signIn: "The grant is no longer valid: sign in again."
        case .signInOrRegistration:
            "Either the grant is no longer valid (sign in again), or the client's id\(part(\.client)), \(credential) or "
                + "authentication method\(part(\.method)) is not what the server has registered."
        case .clientRegistration where refusesClient && asked?.isRegistered == true:
            "The server no longer knows this client\(part(\.client)), or not this secret of it: register again, and have the user "
                + "sign in again."
        case .clientRegistration:
            "Check the client's id\(part(\.client)), \(credential), authentication method\(part(\.method)), scope and grants against "
                + "its registration."
        // The note says what to change.
        case .programChange where note != nil: nil
        case .retry where isForeign:
            "The server doesn't answer like this: look for a firewall, a proxy or a captive portal before it."
        default: pauseAdvice
        }
    }

    private var needsUser: Bool { error.flatMap { Refusal.codes[$0] }?.meaning == .userNeeded }

    /// What a client of this method proves its identity with.
    private var credential: String { asked?.method == "private_key_jwt" ? "key" : "secret" }

    private var pauseAdvice: String {
        if let retryAfter { return "Try again in \(retryAfter.shown)." }
        let isRequest = status.map { (400..<500).contains($0) } ?? false
        return isRequest && !isPassing ? "Check the endpoint's URL and the request's parameters." : "Try again later."
    }
}

extension OAuthError {
    /// Whether the server refused the client itself, and not its user.
    ///
    /// A server that registers clients may forget them. Then register again; a new sign-in alone doesn't help.
    public var refusesClient: Bool {
        if case .registrationRefused = problem { return false }
        return code == .refused && error.map(Refusal.codesOfClients.contains) ?? false
    }

    /// The same error, of a registration.
    var ofRegistration: OAuthError {
        var error = self
        switch problem {
        case .refused: error.problem = .registrationRefused
        case .unreadableResponse(let detail):
            error.problem = .invalidMetadata("\(server) answered a registration, but not with a client: \(detail)")
        default: break
        }
        return error
    }

    /// Whether the request may still be under way: not if it was never sent, or if the server has answered.
    ///
    /// An answer with the status 502 or 504 comes from a gateway, behind which the server may still be working. A server may also
    /// answer that it is already processing such a request, as Salesforce does.
    public var mayBeUnderWay: Bool {
        switch problem {
        case .timedOut, .connectionFailed: return true
        case .notSent, .credentialsUnavailable, .signInExpired: return false
        default:
            let isBehind = serverDescription?.lowercased().contains(Refusal.wordsUnderWay) ?? false
            return remedy == .retry && retryAfter == nil && (status == 502 || status == 504 || isBehind)
        }
    }

    /// The error of a transport.
    package init(_ error: TransportError, of request: TransportRequest) {
        switch error {
        case .notSent(let reason, let underlying):
            self.init(.notSent(reason))
            self.underlying = underlying
        case .connectionLost(let reason, let underlying):
            self.init(.connectionFailed(reason))
            self.underlying = underlying
        case .timedOut(let underlying):
            self.init(.timedOut(request.timeLimit))
            self.underlying = underlying
        case .tooLong: self.init(.unreadableResponse("it is longer than \(request.maximumBodySize) bytes"))
        case .invalidConfiguration(let problem): self.init(.invalidConfiguration(problem))
        }
    }
}

extension TokenTransport {
    /// Sends a request to an authorization server, and throws a failure as an error about the server.
    package func answer(
        to request: TransportRequest, hiding secrets: [String], asking asked: OAuthError.Asked
    ) async throws -> TransportResponse {
        do {
            return try await answer(to: request, hiding: secrets)
        } catch let error as TransportError {
            var failure = OAuthError(error, of: request)
            failure.asked = asked
            throw failure
        }
    }
}
