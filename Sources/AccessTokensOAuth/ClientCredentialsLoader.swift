public import AccessTokens
public import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A loader for programs that act for themselves: it gets tokens for a client's own id and secret.
///
/// ```swift
/// let tokens = TokenService(
///     loader: try ClientCredentialsLoader(tokenURL: url, clientID: "reports", clientSecret: secret, scope: "api.read"))
/// ```
///
/// A value without state: concurrent loads are independent requests. Each load is one request, never repeated and never
/// redirected; pauses between attempts are the service's. Neither the loader nor its errors show the secret.
///
/// Source: RFC 6749 §4.4.
public struct ClientCredentialsLoader: TokenLoader {
    private let endpoint: TokenEndpoint
    private let grant: [(name: String, value: String)]

    /// Creates a loader, after checking everything that can be checked without the server.
    ///
    /// - Parameters:
    ///   - tokenURL: The token endpoint: `https`, or `http` to a loopback address. Its query is kept. Source: RFC 6749 §3.2.
    ///   - clientID: The client's id.
    ///   - clientSecret: The client's secret, which only the requests themselves carry. A public client has none, and so can't use
    ///     this grant. Source: RFC 6749 §4.4.
    ///   - scope: The scopes to ask for, separated by spaces; `nil` or empty: the server's default. Source: RFC 6749 §3.3.
    ///   - authentication: How the client proves who it is. Source: RFC 6749 §2.3.1.
    ///   - additionalParameters: What else the server wants to know, such as `audience` or `resource` (RFC 8707). They may
    ///     be quoted in errors, so none may be a secret, or a parameter that belongs to a grant or to the authentication.
    ///   - lifetimeWhenMissing: The lifetime of a token whose answer names none; `nil`: until it is invalidated. A load
    ///     every five minutes costs little; a token that is kept without end is refused one day, and only callers that call
    ///     `invalidate` recover from that. Source: RFC 6749 §5.1 (`expires_in` is but recommended).
    ///   - transport: What carries the requests.
    ///   - wallClock: The time, which only a `Retry-After` with a date is compared with.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        tokenURL: URL,
        clientID: String,
        clientSecret: String,
        scope: String? = nil,
        authentication: ClientAuthentication = .clientSecretBasic,
        additionalParameters: [String: String] = [:],
        lifetimeWhenMissing: Duration? = .seconds(300),
        transport: any TokenTransport = URLSessionTransport(),
        wallClock: @escaping @Sendable () -> Date = { Date() }
    ) throws(OAuthError) {
        var grant = [(name: "grant_type", value: "client_credentials")]
        if let scope, !scope.isEmpty { grant.append(("scope", scope)) }
        grant += additionalParameters.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        self.grant = grant
        endpoint = try TokenEndpoint(
            url: tokenURL, client: Client(id: clientID, secret: clientSecret, authentication: authentication),
            transport: transport, lifetimeWhenMissing: lifetimeWhenMissing, wallClock: wallClock,
            adding: additionalParameters)
    }

    /// Gets a token with one request to the server; `previous` plays no part in it.
    ///
    /// - Throws: ``OAuthError``, or `CancellationError` when its task is cancelled.
    @concurrent public func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        try await endpoint.send(grant, about: previous).token()
    }

    /// Yes: asking twice yields two tokens and does no harm.
    public var isRepeatable: Bool { true }
}

extension ClientCredentialsLoader: Redacted {
    /// The client's id and the server's host; not the secret.
    public var description: String {
        "ClientCredentialsLoader(client \(endpoint.client.id) at \(endpoint.url.host ?? "nowhere"))"
    }
}
