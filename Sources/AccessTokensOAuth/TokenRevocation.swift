public import AccessTokens
public import TokenServiceConcurrency

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
    private let endpoint: TokenEndpoint

    /// Creates a revocation, after checking what can be checked without the server.
    ///
    /// - Parameters:
    ///   - revocationURL: The revocation endpoint: `https`, or `http` to a loopback address. Its query is kept.
    ///     Source: RFC 7009 §2.
    ///   - clientID: The client's id, the one that the token was issued to.
    ///   - clientSecret: The client's secret, which only the requests themselves carry; `nil` for a public client, such as an app,
    ///     which can keep none. Source: RFC 6749 §2.1, §3.2.1.
    ///   - authentication: How a client with a secret proves who it is. Source: RFC 6749 §2.3.1.
    ///   - transport: What carries the requests.
    ///   - wallClock: The time, which only a `Retry-After` with a date is compared with.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        revocationURL: URL,
        clientID: String,
        clientSecret: String? = nil,
        authentication: ClientAuthentication = .clientSecretBasic,
        transport: any TokenTransport = URLSessionTransport(),
        wallClock: @escaping @Sendable () -> Date = { Date() }
    ) throws(OAuthError) {
        endpoint = try TokenEndpoint(
            "revocation URL", url: revocationURL,
            client: Client(id: clientID, secret: clientSecret, authentication: authentication), transport: transport,
            wallClock: wallClock)
    }

    /// Revokes the grant of a token: its refresh token, with which servers end the access tokens of the grant too, or the
    /// access token if it has none.
    ///
    /// Returns when the server has answered that the token is worth nothing, which it also does for one that it does not
    /// know. When it throws, the token may still be valid: with `retryAfter`, the server asks to try again then.
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
        try await endpoint.send([("token", revoked), ("token_type_hint", hint)], about: token)
            .requireSuccess(isBodyIgnored: true)
    }
}

extension TokenRevocation: Redacted {
    /// The client's id and the server's host; not the secret.
    public var description: String {
        "TokenRevocation(client \(endpoint.client.id) at \(endpoint.url.host ?? "nowhere"))"
    }
}
