public import AccessTokens
public import AccessTokensHTTP
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A loader for programs that act for a signed-in user: it exchanges the last token's refresh token for a new token.
///
/// ```swift
/// let tokens = TokenService(loader: try RefreshTokenLoader(tokenURL: url, clientID: "app"))
/// await tokens.replace(with: tokenFromSignIn)
/// ```
///
/// A value without state: the refresh token is that of the token to replace, and the next one is part of the returned token. A
/// new refresh token replaces the old one, which is kept if the answer has none. A new one is kept even if it comes with an error
/// or without a usable access token: a `TokenService` takes it out of the `SalvagedGrant`, passes the reason to callers, and asks
/// again after the longest pause, since each attempt spends a refresh token, or after an hour if only a change at the server helps;
/// if the reason's remedy is `signIn`, only after `retryNow()`. Neither the loader nor its errors show a secret.
///
/// Each load is one request, which the loader neither repeats nor redirects: after a lost answer the client can't know whether
/// the server has replaced the refresh token, and using it twice looks like theft (RFC 9700 §4.14.2). A later load still presents
/// it again, since there is no other: a server that has replaced it may then end the session, and callers get an error with the
/// remedy `signIn`.
///
/// Source: RFC 6749 §6.
public struct RefreshTokenLoader: TokenLoader {
    private let client: OAuthClient
    private let scope: String?
    private let scopeMayShrink: Bool
    private let additionalParameters: Form

    /// Creates a loader for a client, after checking everything that can be checked without the server.
    ///
    /// - Parameters:
    ///   - client: The client that the refresh tokens were issued to.
    ///   - scope: The scopes to ask for, separated by spaces, if fewer than were granted; `nil` or empty: all of them.
    ///     Sent as given, whatever the last answer granted: many servers spell scopes in their own way. Source: RFC 6749 §6.
    ///   - scopeMayShrink: Whether scopes that the last token does not have are left out, for a server that refuses to grant
    ///     them (`invalid_scope`). Use it only if the server spells scopes as you do: any other spelling is left out, too.
    ///   - additionalParameters: More parameters, such as `resource` (RFC 8707). A parameter that belongs to a grant or to the
    ///     authentication is refused.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        _ client: OAuthClient, scope: String? = nil, scopeMayShrink: Bool = false, additionalParameters: Form = [:]
    ) throws {
        try client.check(additional: additionalParameters)
        self.client = client
        self.scope = scope
        self.scopeMayShrink = scopeMayShrink
        self.additionalParameters = additionalParameters
    }

    /// Creates a loader for a public client, such as an app, or for one that sends its secret in the `Authorization` header.
    ///
    /// For anything else, create an ``OAuthClient``.
    ///
    /// - Parameters:
    ///   - tokenURL: The token endpoint: `https`, or `http` to a loopback address. Its query is kept. Source: RFC 6749 §3.2.
    ///   - clientID: The client's id.
    ///   - clientSecret: The client's secret, which only the requests contain; `nil` for a public client.
    ///   - scope: The scopes to ask for, if fewer than were granted; `nil` or empty: all of them. Source: RFC 6749 §6.
    ///   - transport: Carries the requests; its time limit must be shorter than `RefreshPolicy(loadTimeout:)`.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        tokenURL: URL, clientID: String, clientSecret: String? = nil, scope: String? = nil,
        transport: any TokenTransport = URLSessionTransport()
    ) throws {
        try self.init(
            OAuthClient(
                id: clientID, authentication: clientSecret.map { .clientSecretBasic($0) } ?? .publicClient, tokenURL: tokenURL,
                transport: transport),
            scope: scope)
    }

    /// Gets a token with one request to the server.
    ///
    /// - Parameter previous: The token whose refresh token is the grant.
    /// - Returns: The new token, with the refresh token for the next load and the scope as far as it is known.
    /// - Throws: ``OAuthError``, with the code `notSignedIn` if `previous` has no refresh token; a `SalvagedGrant` with the
    ///   ``OAuthError`` inside if the server has replaced the refresh token in an answer that is otherwise unusable; or
    ///   `CancellationError` when its task is cancelled.
    @concurrent public func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        guard let previous, let refreshToken = previous.refreshToken, !refreshToken.isEmpty else {
            throw OAuthError.signInNeeded
        }
        var grant = Grant.refreshToken(refreshToken, scope: try scope(within: previous))
        grant.form.add(additionalParameters)
        return try await client.token(for: grant, replacing: previous).token
    }

    /// Always `false`: a refresh token that two loads present at once may look stolen, and the server may revoke the session.
    public var isRepeatable: Bool { false }

    /// Returns the scopes to ask for; if they may shrink, without those that the last token is known to lack.
    private func scope(within previous: AccessToken) throws(OAuthError) -> String? {
        guard let wanted = scope?.split(separator: " "), !wanted.isEmpty else { return nil }
        let granted = scopeMayShrink ? previous.scope.map { Set($0.split(separator: " ")) } : nil
        let scope = wanted.filter { granted?.contains($0) ?? true }.joined(separator: " ")
        // An empty list would mean all scopes.
        guard !scope.isEmpty else {
            throw OAuthError(
                .invalidConfiguration(
                    "the last token has none of the requested scopes; if it only spells them differently, unset scopeMayShrink"))
        }
        return scope
    }

    /// The client's key; `nil` if it has none.
    public var keyThumbprint: String? { client.keyThumbprint }
}

extension RefreshTokenLoader: Redacted {
    /// The client's id and the server's host; not the secret.
    package var text: String { "RefreshTokenLoader(\(client.place))" }
}
