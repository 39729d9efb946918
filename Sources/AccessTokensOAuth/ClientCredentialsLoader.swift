public import AccessTokens
public import AccessTokensHTTP
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A loader for programs that act on their own behalf: it gets tokens for a client's id and secret.
///
/// ```swift
/// let tokens = TokenService(
///     loader: try ClientCredentialsLoader(tokenURL: url, clientID: "reports", clientSecret: secret, scope: "api.read"))
/// ```
///
/// A value without state: concurrent loads are independent requests. Each load is one request, never repeated and never
/// redirected; the service takes care of the pauses between attempts. Neither the loader nor its errors show the secret.
///
/// Source: RFC 6749 §4.4.
public struct ClientCredentialsLoader: TokenLoader {
    private let client: OAuthClient
    private let grant: Grant

    /// Creates a loader for a client, after checking everything that can be checked without the server.
    ///
    /// - Parameters:
    ///   - client: The client; not a public one. Source: RFC 6749 §4.4.
    ///   - scope: The scopes to ask for, separated by spaces; `nil` or empty: the server's default. Source: RFC 6749 §3.3.
    ///   - additionalParameters: More parameters, such as `audience` or `resource` (RFC 8707). A parameter that belongs to a grant
    ///     or to the authentication is refused.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(_ client: OAuthClient, scope: String? = nil, additionalParameters: Form = [:]) throws {
        guard !client.authentication.isPublic else {
            throw OAuthError(.invalidConfiguration("a public client can't use client credentials: it has to authenticate"))
        }
        try client.check(additional: additionalParameters)
        var grant = Grant.clientCredentials(scope: scope)
        grant.form.add(additionalParameters)
        self.grant = grant
        self.client = client
    }

    /// Creates a loader for a client that sends its secret in the `Authorization` header.
    ///
    /// For anything else, create an ``OAuthClient``.
    ///
    /// - Parameters:
    ///   - tokenURL: The token endpoint: `https`, or `http` to a loopback address. Its query is kept. Source: RFC 6749 §3.2.
    ///   - clientID: The client's id.
    ///   - clientSecret: The client's secret; only the requests contain it.
    ///   - scope: The scopes to ask for, separated by spaces; `nil` or empty: the server's default. Source: RFC 6749 §3.3.
    ///   - transport: Carries the requests.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        tokenURL: URL, clientID: String, clientSecret: String, scope: String? = nil,
        transport: any TokenTransport = URLSessionTransport()
    ) throws {
        try self.init(
            OAuthClient(
                id: clientID, authentication: .clientSecretBasic(clientSecret), tokenURL: tokenURL, transport: transport),
            scope: scope)
    }

    /// Gets a token with one request to the server; `previous` isn't used.
    ///
    /// - Throws: ``OAuthError``, or `CancellationError` when its task is cancelled.
    @concurrent public func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        try await client.token(for: grant, replacing: previous).token
    }

    /// Always `true`: requesting twice yields two tokens and does no harm.
    public var isRepeatable: Bool { true }

    /// The client's key; `nil` if it has none.
    public var keyThumbprint: String? { client.keyThumbprint }
}

extension ClientCredentialsLoader: Redacted {
    /// The client's id and the server's host; not the secret.
    package var text: String { "ClientCredentialsLoader(\(client.place))" }
}
