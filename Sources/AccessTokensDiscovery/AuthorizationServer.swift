public import AccessTokensHTTP
public import AccessTokensOAuth
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An authorization server's metadata: its endpoints, and what it supports.
///
/// ```swift
/// let server = try await AuthorizationServer.discover("https://login.example")
/// let client = try server.client(id: "app")
/// let request = try await server.signIn(client, redirectURI: "com.example.app:/signed-in", scope: "api")
/// ```
///
/// Nothing is guessed: if the metadata lacks something, the functions here throw an error that says what.
///
/// Source: RFC 8414; OpenID Connect Discovery 1.0.
public struct AuthorizationServer: Sendable {
    /// The server's identifier, which sign-in callbacks and client assertions contain.
    public let issuer: String

    /// All members of the metadata.
    public let members: ResponseMembers

    /// Fetches a server's metadata.
    ///
    /// Tries the location of RFC 8414, and if no metadata is there, the two of OpenID Connect, with one request each. Follows no
    /// redirect. From now on the issuer is spelled as the metadata spell it, with or without the slash of an empty path.
    ///
    /// - Parameters:
    ///   - issuer: The server's identifier: `https`, or `http` to a loopback address. The metadata's own must be the same text,
    ///     but for the slash of an empty path.
    ///   - metadataURL: Where the metadata is, if the program knows that it is elsewhere; asked alone. `nil`: at the locations
    ///     of the specifications.
    ///   - transport: Carries the requests.
    ///   - timeLimit: How long each request may take, 20 s unless said otherwise. Clamped to 0.1 s through one hour.
    /// - Throws: `OAuthError`, with the code `invalidMetadata` if there is none (with the status 404 if each place says so), or it
    ///   is another server's or longer than 1 MiB; or `CancellationError` when its task is cancelled.
    @concurrent public static func discover(
        _ issuer: String, metadataURL: URL? = nil, transport: any TokenTransport = URLSessionTransport(),
        timeLimit: Duration = .seconds(20)
    ) async throws -> AuthorizationServer {
        let place = try MetadataDocument.place("the issuer", issuer)
        var places = [
            MetadataDocument.wellKnown("oauth-authorization-server", of: place),
            MetadataDocument.wellKnown("openid-configuration", of: place),
            MetadataDocument.appended("openid-configuration", to: place),
        ].compactMap { $0 }
        // Without a path the last two locations are the same.
        if places.count == 3, places[1] == places[2] { places.removeLast() }
        if let metadataURL {
            places = [try MetadataDocument.place("the metadata's URL", metadataURL.absoluteString, hasQuery: true)]
        }
        let (found, named, _) = try await MetadataDocument.first(
            "issuer", at: places, by: transport, timeLimit: timeLimit
        ) { MetadataDocument.isSame($0, as: issuer) }
        return AuthorizationServer(issuer: named, members: found)
    }

    /// Returns the URL of an endpoint, such as `revocation_endpoint` for `OAuthClient.revoke(_:at:)`.
    ///
    /// - Throws: `OAuthError` with the code `invalidMetadata` if the server doesn't name the endpoint, or if its URL is neither
    ///   `https` nor, for a server on this machine, `http` to a loopback address.
    public func endpoint(_ name: String) throws -> URL {
        guard let text = members[name] else { throw missing(name) }
        // A server elsewhere has no business with this machine's other programs.
        guard let url = URL(string: text), let origin = Origin(url), origin.isPrivate,
            origin.scheme == "https" || !issuer.lowercased().hasPrefix("https:"), url.fragment == nil
        else {
            throw OAuthError(
                .invalidMetadata(
                    "The '\(name)' of \(shown) must begin with https, or with http for a loopback address if the server has one, and "
                        + "have neither user nor fragment"))
        }
        return url
    }

    /// Creates a client of the server.
    ///
    /// - Parameters:
    ///   - id: The client's id.
    ///   - authentication: How the client authenticates; the server must support it, if it lists the methods that it supports.
    ///   - acceptedTokenTypes: The types of tokens that the program can use; `nil`: as in `OAuthClient`.
    ///   - proof: The key that the tokens are to be bound to; `nil` for bearer tokens.
    ///   - transport: Carries the requests.
    ///   - reading: Says what the answer to a grant means, for a server that deviates. See `OAuthClient`.
    /// - Throws: `OAuthError`, which says what is missing.
    public func client(
        id: String, authentication: ClientAuthentication = .publicClient, acceptedTokenTypes: Set<String>? = nil,
        proof: (any TokenProof)? = nil, transport: any TokenTransport = URLSessionTransport(),
        reading: @escaping @Sendable (_ members: ResponseMembers, _ status: Int) -> ResponseReading = { _, _ in .asUsual }
    ) throws -> OAuthClient {
        let method = authentication.description
        if let methods = members.value("token_endpoint_auth_methods_supported")?.texts, authentication.isListed,
            !methods.contains(method)
        {
            let supported = ServerText.safe(methods.joined(separator: ", "), hiding: [])
            throw OAuthError(.invalidConfiguration("\(shown) doesn't support \(method); it supports: \(supported)"))
        }
        return try OAuthClient(
            id: id, authentication: authentication, tokenURL: endpoint("token_endpoint"), issuer: issuer,
            acceptedTokenTypes: acceptedTokenTypes, proof: proof, transport: transport, reading: reading)
    }

    /// Creates a sign-in for a client; if the server requires it, sends the sign-in's parameters to the server first, in one
    /// request.
    ///
    /// The callback must contain the issuer if the metadata says that it does (RFC 9207).
    ///
    /// - Parameters:
    ///   - client: The client that will present the code, made by one of the functions here.
    ///   - redirectURI: Where the server redirects the browser after the sign-in.
    ///   - scope: The scopes to ask for, separated by spaces.
    ///   - additionalParameters: More parameters, such as `resource`; none may be a secret.
    ///   - requiresPKCE: Whether to refuse a server that doesn't list `S256`, since it might ignore the challenge (MCP).
    /// - Throws: `OAuthError`, which says what is missing, or `CancellationError` when its task is cancelled.
    @concurrent public func signIn(
        _ client: OAuthClient, redirectURI: String? = nil, scope: String? = nil, additionalParameters: Form = [:],
        requiresPKCE: Bool = true
    ) async throws -> SignInRequest {
        guard client.issuer == issuer else {
            throw OAuthError(.invalidConfiguration("the client belongs to another authorization server"))
        }
        if requiresPKCE, !members.list("code_challenge_methods_supported").contains("S256") {
            throw OAuthError(
                .invalidMetadata(
                    "\(shown) doesn't list S256 in code_challenge_methods_supported, which this sign-in requires"
                ))
        }
        let request = try SignInRequest(
            client, authorizationURL: endpoint("authorization_endpoint"), redirectURI: redirectURI, scope: scope,
            additionalParameters: additionalParameters,
            requiresIssuer: isTrue("authorization_response_iss_parameter_supported"))
        guard isTrue("require_pushed_authorization_requests") else { return request }
        return try await request.pushed(to: endpoint("pushed_authorization_request_endpoint"))
    }

    /// Whether a member is `true`, such as `require_pushed_authorization_requests`.
    func isTrue(_ name: String) -> Bool { members.value(name) == .bool(true) }

    var shown: String { ServerText.safe(issuer, hiding: []) }

    private func missing(_ name: String) -> OAuthError {
        OAuthError(.invalidMetadata("The metadata of \(shown) has no '\(name)', or it isn't a string"))
    }
}

extension ResponseMembers {
    /// The strings of a member that is a list of strings.
    func list(_ name: String) -> [String] { value(name)?.texts ?? [] }
}

extension AuthorizationServer: Redacted {
    /// The server's host.
    package var text: String { "AuthorizationServer(\(URL(string: issuer)?.host(percentEncoded: true) ?? "nowhere"))" }
}
