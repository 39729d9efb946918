import AccessTokens
import TokenServiceHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes a token, or an error, of an authorization server's answer.
///
/// Source: RFC 6749 §5.
struct ResponseReader {
    var response: TokenResponse
    let secrets: [String]
    let lifetimeWhenMissing: Duration?
    let now: Date

    /// Returns the token, or throws what the server or its answer has against it.
    func token() throws(OAuthError) -> AccessToken {
        try requireSuccess()
        let grant = try grant()
        if let seconds = grant.expiresIn, seconds.duration == nil { throw unusableLifetime }
        return token(grant, lifetime: grant.expiresIn?.duration ?? lifetimeWhenMissing)
    }

    /// Throws what the server has against the request, if it has.
    ///
    /// - Parameter isBodyIgnored: Whether a success is one whatever its body says. Some servers write an error into an answer
    ///   with status 200, but where no token is expected a body means nothing (RFC 7009 §2.2).
    func requireSuccess(isBodyIgnored: Bool = false) throws(OAuthError) {
        guard !(300..<400).contains(response.status) else { throw failure(.redirected) }
        let isSuccess = (200..<300).contains(response.status)
        if isSuccess, isBodyIgnored { return }
        let refusal = try? TokenJSON.decode(Refusal.self, from: response.body)
        guard isSuccess, refusal?.error == nil else { throw failure(refusal) }
    }

    /// Returns what the answer grants, to be used as a Bearer token.
    func grant() throws(OAuthError) -> Grant {
        let grant: Grant
        do {
            grant = try TokenJSON.decode(Grant.self, from: response.body)
        } catch {
            throw failure(.unreadableResponse, error.text + kindOfAnswer)
        }
        guard grant.tokenType.lowercased() == "bearer" else {
            let secrets = secrets + [grant.accessToken, grant.refreshToken].compactMap { $0 }
            throw failure(.unsupportedTokenType, ServerText.safe(grant.tokenType, hiding: secrets))
        }
        return grant
    }

    /// Returns the token of a grant.
    func token(_ grant: Grant, lifetime: Duration?) -> AccessToken {
        // The type's name as RFC 6750 §2.1 writes it, however the server does: resource servers may be less tolerant.
        AccessToken(
            grant.accessToken, tokenType: "Bearer", lifetime: lifetime,
            refreshIn: grant.refreshIn.flatMap { refreshIn in
                lifetime.flatMap { .zero < refreshIn && refreshIn < $0 ? refreshIn : nil }
            },
            scope: grant.scope, refreshToken: grant.refreshToken)
    }

    /// The lifetime is negative, or no number.
    var unusableLifetime: OAuthError { failure(.unreadableResponse, "expires_in must be a number of seconds, 0 or more") }

    /// An error about this answer.
    private func failure(_ code: OAuthError.Code, _ detail: String? = nil) -> OAuthError {
        var failure = OAuthError(code, detail: detail)
        failure.status = response.status
        failure.retryAfter = response.header("Retry-After").flatMap { RetryAfter.wait($0, now: now) }
        return failure
    }

    /// The server's own error, in its words as far as they can be read.
    private func failure(_ refusal: Refusal?) -> OAuthError {
        var failure = failure(.refused)
        let secrets = secrets + (refusal?.tokens ?? [])
        failure.error = refusal?.error.map {
            TokenServiceError.Remedy.permanent[$0] == nil ? ServerText.safe($0, hiding: secrets) : $0
        }
        // Of the code as it is shown: `invalid_grant` with a line break is one too, for whoever compares it.
        failure.remedy = .ending(failure.error, status: response.status)
        failure.serverDescription = refusal?.errorDescription.map { ServerText.safe($0, hiding: secrets) }
        return failure
    }

    /// What the server calls its answer, when that is not JSON.
    private var kindOfAnswer: String {
        guard let type = response.header("Content-Type"), !type.lowercased().contains("json") else { return "" }
        return " (it is called \(ServerText.safe(type, hiding: secrets)))"
    }
}

extension TokenServiceError.Remedy {
    /// What ends the errors that time alone does not (RFC 6749 §5.2; RFC 8707 §2 for `invalid_target`; RFC 7009
    /// §2.2.1 for `unsupported_token_type`).
    static let permanent: [String: TokenServiceError.Remedy] = [
        "invalid_grant": .signIn,
        "invalid_client": .clientRegistration,
        "unauthorized_client": .clientRegistration,
        "unsupported_grant_type": .clientRegistration,
        "invalid_scope": .clientRegistration,
        "invalid_request": .clientRegistration,
        "invalid_target": .clientRegistration,
        "unsupported_token_type": .clientRegistration,
    ]

    /// Returns what ends a server's error with an HTTP status.
    ///
    /// A status that speaks of a busy or broken server wins over the error code: nobody loses a session to a bad
    /// gateway. A 401 or 403 without a known code is about the client, whose credentials each request carries: some servers
    /// refuse a wrong secret with an empty 403. It is no sign-out: only `invalid_grant` ends a session.
    static func ending(_ error: String?, status: Int) -> TokenServiceError.Remedy {
        if status == 408 || status == 429 || status >= 500 { return .retry }
        return error.flatMap { permanent[$0] } ?? (status == 401 || status == 403 ? .clientRegistration : .retry)
    }
}
