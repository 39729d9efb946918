import AccessTokens
import TokenServiceHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads a token, or an error, from an authorization server's answer.
///
/// Source: RFC 6749 §5.
struct ResponseReader {
    var response: TokenResponse
    let secrets: [String]
    let lifetimeWhenMissing: Duration?
    let now: Date

    /// Returns the token, or throws the reason why there is none.
    func token() throws(OAuthError) -> AccessToken {
        try requireSuccess()
        let body = try tokenBody()
        if let seconds = body.expiresIn, seconds.duration == nil { throw unusableLifetime }
        return token(body, lifetime: body.expiresIn?.duration ?? lifetimeWhenMissing)
    }

    /// Throws the server's error if it refused the request.
    ///
    /// - Parameter isBodyIgnored: Whether the status alone decides. Some servers write an error into an answer with status 200,
    ///   but where no token is expected the body means nothing (RFC 7009 §2.2).
    func requireSuccess(isBodyIgnored: Bool = false) throws(OAuthError) {
        guard !(300..<400).contains(response.status) else { throw failure(.redirected) }
        let isSuccess = (200..<300).contains(response.status)
        if isSuccess, isBodyIgnored { return }
        let errorBody = try? TokenJSON.decode(ErrorBody.self, from: response.body)
        guard isSuccess, errorBody?.error == nil else { throw failure(errorBody) }
    }

    /// Returns the body of an answer that grants a Bearer token.
    func tokenBody() throws(OAuthError) -> TokenBody {
        let body: TokenBody
        do {
            body = try TokenJSON.decode(TokenBody.self, from: response.body)
        } catch {
            throw failure(.unreadableResponse, error.text + kindOfAnswer)
        }
        guard body.tokenType.lowercased() == "bearer" else {
            throw failure(
                .unsupportedTokenType, safe(body.tokenType, hiding: [body.accessToken, body.refreshToken].compactMap { $0 }))
        }
        return body
    }

    /// Returns the token that an answer grants.
    func token(_ body: TokenBody, lifetime: Duration?) -> AccessToken {
        // The type's name as RFC 6750 §2.1 writes it, however the server does: resource servers may be less tolerant.
        AccessToken(
            body.accessToken, tokenType: "Bearer", lifetime: lifetime,
            refreshIn: body.refreshIn.flatMap { refreshIn in
                lifetime.flatMap { .zero < refreshIn && refreshIn < $0 ? refreshIn : nil }
            },
            scope: body.scope, refreshToken: body.refreshToken)
    }

    /// The lifetime is negative, or not a number.
    var unusableLifetime: OAuthError { failure(.unreadableResponse, "expires_in must be a non-negative number of seconds") }

    /// An error about this answer.
    private func failure(_ code: OAuthError.Code, _ detail: String? = nil) -> OAuthError {
        var failure = OAuthError(code, detail: detail)
        failure.status = response.status
        failure.retryAfter = response.header("Retry-After").flatMap { RetryAfter.wait($0, now: now) }
        return failure
    }

    /// The server's own error, as far as it can be read.
    private func failure(_ errorBody: ErrorBody?) -> OAuthError {
        var failure = failure(.refused)
        let tokens = errorBody?.tokens ?? []
        failure.error = errorBody?.error.map {
            TokenServiceError.Remedy.permanent[$0] == nil ? safe($0, hiding: tokens) : $0
        }
        // Of the code as it is shown: callers that compare it find `invalid_grant` even if the server added a line break.
        failure.remedy = .ending(failure.error, status: response.status)
        failure.serverDescription = errorBody?.errorDescription.map { safe($0, hiding: tokens) }
        return failure
    }

    /// Returns a part of the answer, made safe to print: without what was sent, and without the credentials that the answer holds.
    private func safe(_ text: String, hiding tokens: [String]) -> String {
        guard let credentials = Credentials.values(in: response.body) else { return "[hidden]" }
        return ServerText.safe(text, hiding: secrets + tokens + credentials)
    }

    /// What the server calls its answer, when that is not JSON: a usual name, or none, since a server may write anything there.
    private var kindOfAnswer: String {
        guard let type = response.header("Content-Type")?.lowercased(), !type.contains("json") else { return "" }
        let usual = ["text/html", "text/plain", "text/xml", "application/xml", "application/x-www-form-urlencoded"]
        let name = type.prefix { $0 != ";" }.trimming { $0 == " " }
        return " (its type is \(usual.contains(name) ? name : "not JSON"))"
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
    /// A status that speaks of a busy or broken server wins over the error code: a bad gateway must not end a session. A 401 or 403
    /// without a known code is about the client, whose credentials each request carries: some servers refuse a wrong secret with
    /// an empty 403. It is not a sign-out: only `invalid_grant` ends a session.
    static func ending(_ error: String?, status: Int) -> TokenServiceError.Remedy {
        if status == 408 || status == 429 || status >= 500 { return .retry }
        return error.flatMap { permanent[$0] } ?? (status == 401 || status == 403 ? .clientRegistration : .retry)
    }
}
