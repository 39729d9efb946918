import AccessTokens
public import TokenServiceConcurrency
import AccessTokensHTTP

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Why a request has no usable result.
///
/// A request may also end with two other errors: a `TokenServiceError` if there is no token, or if its user has signed out since
/// it was sent, and `CancellationError`.
public struct DataLoadingError: Error, Sendable {
    /// The kind of error, as a value to compare.
    public struct Code: Sendable, Hashable, Described {
        /// Tokens can't be bound to this URL: it has no origin, it uses neither TLS nor loopback, or a proxy would read the
        /// tokens.
        public static let invalidConfiguration = Code(text: "invalidConfiguration")
        /// The request is invalid; nothing was sent.
        public static let invalidRequest = Code(text: "invalidRequest")
        /// The token's type or its characters don't fit the request; nothing was sent.
        public static let unusableToken = Code(text: "unusableToken")
        /// There is no proof by the key that the token is bound to: signing failed or took too long; nothing was sent.
        public static let proofUnavailable = Code(text: "proofUnavailable")
        /// The server could not be reached, or the connection ended before the response was complete.
        public static let connectionFailed = Code(text: "connectionFailed")
        /// The session's time limit passed before the response was complete, or before there was a token.
        public static let timedOut = Code(text: "timedOut")
        /// The response's body is longer than ``Request/responseLimit``.
        public static let responseTooLong = Code(text: "responseTooLong")
        /// The server redirected to a forbidden URL, or too often.
        public static let redirectRefused = Code(text: "redirectRefused")
        /// The server answered 401: there was no token; or it refused a new one as well, with any status (RFC 9110 §15.5.2).
        public static let unauthorized = Code(text: "unauthorized")
        /// The server refused the token, and the body can't be sent again with a new one; the next request carries the new token.
        public static let bodyNotReplayable = Code(text: "bodyNotReplayable")
        /// The token is valid but lacks a scope; ``DataLoadingError/scope`` names the scope (RFC 6750 §3.1).
        public static let insufficientScope = Code(text: "insufficientScope")
        /// The server answered with any other status that is not a success.
        public static let unacceptableStatus = Code(text: "unacceptableStatus")
        /// The response arrived, but can't be decoded as the requested type.
        public static let undecodable = Code(text: "undecodable")

        package let text: String
    }

    /// The kind of error.
    public let code: Code

    /// The server's response, if there was one; its body may say more.
    public let response: Response?

    /// The session's or the decoder's own error, if it was one.
    public let underlying: (any Error)?

    /// The challenge's error, such as `invalid_token`, made safe to print; `nil` if it has none (RFC 6750 §3).
    public let error: String?

    /// The scope that the resource needs, made safe to print; `nil` if the server named none (RFC 6750 §3).
    public let scope: String?

    /// The URL of the resource's metadata, for `ProtectedResource.discover`; `nil` if the response has none (RFC 9728 §5.1).
    ///
    /// The server chooses the URL, so it may lead anywhere. `discover` only contacts the resource's own origin.
    public let resourceMetadata: URL?

    /// The exact problem, in our own words.
    private let detail: String?

    /// Whether a new token was refused as well.
    private let isSecondRefusal: Bool

    /// Whether the request carried a token from `OriginTokens`.
    private let carriedToken: Bool

    init(
        _ code: Code, detail: String? = nil, response: Response? = nil, underlying: (any Error)? = nil,
        challenge: AuthenticationChallenge? = nil, isSecondRefusal: Bool = false, hiding carried: CarriedToken? = nil
    ) {
        self.code = code
        self.detail = detail
        self.response = response
        self.underlying = underlying
        self.isSecondRefusal = isSecondRefusal
        carriedToken = carried != nil
        let secrets = (carried?.secrets ?? []) + (response?.header("DPoP-Nonce").map { [$0] } ?? [])
        error = challenge?["error"].map { ServerText.safe($0, hiding: secrets) }
        scope = challenge?["scope"].map { ServerText.safe($0, hiding: secrets) }
        resourceMetadata = challenge?["resource_metadata"].flatMap(URL.init(string:))
    }
}

extension DataLoadingError: Redacted, DescribedError {
    /// The problem and its remedy; neither a token nor a body.
    package var text: String {
        let text = explanation
        return detail.map { "\(text): \($0)." } ?? "\(text)."
    }

    private var explanation: String {
        switch code {
        case .invalidConfiguration: "Tokens can't be bound to this origin"
        case .invalidRequest: "The request is invalid, so nothing was sent"
        case .unusableToken: "The token can't be sent"
        case .proofUnavailable: "There is no proof for the request, so nothing was sent"
        case .connectionFailed: "The server could not be reached, or the connection ended before the response was complete"
        case .timedOut: "The server did not answer within the session's time limit"
        case .responseTooLong: "The response is longer than the request's responseLimit"
        case .redirectRefused: "The server's redirect was not followed"
        case .unauthorized where error == "use_dpop_nonce":
            "The server refused the proof because of its nonce (\(serversWords))"
        case .unauthorized where error == "insufficient_scope":
            "The server refused the token for its scope (\(serversWords)): ask for the scope \(scope ?? "that the resource needs")"
        // RFC 9470.
        case .unauthorized where error == "insufficient_user_authentication":
            "The server requires a newer or stronger sign-in of the user (\(serversWords)): have the user sign in again"
        case .unauthorized where isSecondRefusal:
            "The server refused a new token as well (\(serversWords)): check the audience and the scope that it expects"
        case .unauthorized where !carriedToken:
            "The server refused a request to which no token was added (\(serversWords)): check that OriginTokens names its "
                + "origin, that no redirect led to another origin, and that it has no Authorization header of its own"
        case .unauthorized:
            "The server requires another kind of authentication (\(serversWords)): see the scheme in its WWW-Authenticate"
        case .bodyNotReplayable:
            "The server refused the token (\(serversWords)), and the body can't be sent again: make it replayable, or try again"
        case .insufficientScope:
            "The token is valid but lacks a scope (\(serversWords)): ask for the scope \(scope ?? "that the resource needs")"
        case .unacceptableStatus: "The server answered with \(serversWords)"
        case .undecodable: "The response (\(serversWords)) can't be decoded as the requested type"
        default: code.description
        }
    }

    private var serversWords: String {
        // Show only the host of the URL: the rest may identify a user.
        let status = response.map { "status \($0.status) from \($0.url.host(percentEncoded: true) ?? "nowhere")" } ?? "no status"
        return error.map { "\(status), \($0)" } ?? status
    }
}
