public import AccessTokens
public import AccessTokensHTTP
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Tells an authorization server that a token is no longer needed: the last step of a sign-out.
///
/// ```swift
/// let revocation = try TokenRevocation(revocationURL: url, clientID: "app")
/// for token in await tokens.reset().discarded { try await revocation.revoke(token) }
/// ```
///
/// A value without state: concurrent revocations are independent requests, each sent once and never redirected. Whether
/// a failed one is tried again is the caller's choice, and harmless. Neither it nor its errors show a secret.
///
/// Source: RFC 7009.
public struct TokenRevocation: Sendable {
    private let client: OAuthClient
    private let endpoint: TokenEndpoint

    /// Creates a revocation for a client.
    ///
    /// - Parameters:
    ///   - client: The client that the tokens were issued to.
    ///   - revocationURL: The revocation endpoint: `https`, or `http` to a loopback address. Its query is kept.
    ///     Source: RFC 7009 §2.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(_ client: OAuthClient, revocationURL: URL) throws(OAuthError) {
        endpoint = try TokenEndpoint("revocation URL", revocationURL)
        self.client = client
    }

    /// Creates a revocation for a public client, such as an app, or for one that sends its secret in the `Authorization` header.
    ///
    /// - Parameters:
    ///   - revocationURL: The revocation endpoint: `https`, or `http` to a loopback address. Source: RFC 7009 §2.
    ///   - clientID: The client's id, the one that the token was issued to.
    ///   - clientSecret: The client's secret, which only the requests themselves carry; `nil` for a public client.
    ///   - transport: Carries the requests.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        revocationURL: URL, clientID: String, clientSecret: String? = nil, transport: any TokenTransport = URLSessionTransport()
    ) throws(OAuthError) {
        endpoint = try TokenEndpoint("revocation URL", revocationURL)
        client = try OAuthClient(
            id: clientID, authentication: clientSecret.map { .clientSecretBasic($0) } ?? .publicClient, tokenURL: revocationURL,
            transport: transport)
    }

    /// Revokes the grant of a token: its refresh token, with which servers end the access tokens of the grant too, or the
    /// access token if it has none.
    ///
    /// Returns when the server has answered that the token is invalid, which it also does for an unknown token. When it throws,
    /// the token may still be valid; ``OAuthError/retryAfter`` says when to try again, if the server does.
    ///
    /// - Parameter token: A token that `TokenService.reset()` returned, or that its `onDiscard` was called with.
    /// - Throws: ``OAuthError``, or `CancellationError` when its task is cancelled.
    ///
    /// Source: RFC 7009 §2.1, §2.2.
    @concurrent public func revoke(_ token: AccessToken) async throws {
        var revoked = token.value
        var hint = "access_token"
        if let refreshToken = token.refreshToken, !refreshToken.isEmpty { (revoked, hint) = (refreshToken, "refresh_token") }
        // Nothing to revoke, and an empty parameter would be an invalid request.
        guard !revoked.isEmpty else { return }
        try await client.send(["token": revoked, "token_type_hint": hint], to: endpoint, replacing: token)
            .requireSuccess(isBodyIgnored: true)
    }
}

extension TokenRevocation: Redacted {
    /// The client's id and the server's host; not the secret.
    package var text: String { "TokenRevocation(client \(client.id) at \(endpoint.url.host ?? "nowhere"))" }
}
