public import AccessTokensHTTP
public import AccessTokensOAuth
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a client says of itself to a server that it has never met, in a registration or in a document of its own.
///
/// ```swift
/// let metadata = ClientMetadata(name: "Reports", redirectURIs: ["http://127.0.0.1/callback"], scope: "tools")
/// ```
///
/// Source: RFC 7591 §2.
public struct ClientMetadata: Sendable, Hashable {
    /// The name that the user sees.
    public var name: String

    /// Where the server may redirect the browser.
    public var redirectURIs: [String]

    /// The scopes that the client may ask for, separated by spaces; `nil`: the server decides.
    public var scope: String?

    /// The registered name of how the client authenticates; `nil`: the server decides.
    ///
    /// If it lists methods, it is asked for none at all, or else for a secret.
    public var authenticationMethod: String?

    /// The types of grants that the client presents.
    public var grantTypes = ["authorization_code", "refresh_token"]

    /// Other members that are texts, such as `client_uri`, `software_id`, or `application_type` (OpenID Connect).
    public var others: [String: String] = [:]

    /// Creates the metadata of a client that signs users in.
    public init(name: String, redirectURIs: [String], scope: String? = nil) {
        self.name = name
        self.redirectURIs = redirectURIs
        self.scope = scope
    }

    /// Returns the document with which the client describes itself at a URL that is its id, as JSON.
    ///
    /// Serve it there, with `application/json`, where `AuthorizationServer.acceptsClientDocuments` says that the server takes such
    /// clients. Everyone can read it, so such a client has no secret.
    ///
    /// - Parameter url: The document's URL: `https`, with a path, and without query, fragment, user, and segments of dots.
    /// - Throws: `OAuthError` with the code `invalidConfiguration`, which says what to correct.
    ///
    /// Source: draft-ietf-oauth-client-id-metadata-document.
    public func document(at url: URL) throws -> Data {
        let path = url.path(percentEncoded: true)
        guard url.scheme?.lowercased() == "https", let origin = Origin(url), origin.isPrivate, url.query == nil,
            url.fragment == nil, path.count > 1, !path.split(separator: "/").contains(where: { $0 == "." || $0 == ".." })
        else {
            throw OAuthError(
                .invalidConfiguration(
                    "the document's URL must begin with https and have a path, and neither user, query, fragment nor segments of "
                        + "dots"))
        }
        let method = authenticationMethod ?? "none"
        guard !method.hasPrefix("client_secret") else {
            throw OAuthError(
                .invalidConfiguration("a client that a public document describes can't use \(ServerText.line(method))"))
        }
        return try json(authenticationMethod: method, id: url.absoluteString)
    }

    func json(authenticationMethod: String?, id: String? = nil) throws -> Data {
        var members = others.mapValues { Member.text($0) }
        members["client_id"] = id.map { .text($0) }
        members["client_name"] = .text(name)
        members["redirect_uris"] = .list(redirectURIs)
        members["grant_types"] = .list(grantTypes)
        members["response_types"] = .list(grantTypes.contains("authorization_code") ? ["code"] : [])
        members["token_endpoint_auth_method"] = authenticationMethod.map { .text($0) }
        members["scope"] = scope.map { .text($0) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(members)
    }

    private enum Member: Encodable {
        case text(String)
        case list([String])

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .text(let text): try container.encode(text)
            case .list(let texts): try container.encode(texts)
            }
        }
    }
}

/// A client that a server has registered: what to keep, and to use at each start from then on.
///
/// Its encoded form has its secrets: keep it where tokens are kept. No description, dump or mirror shows one.
///
/// Source: RFC 7591 §3.2.1.
public struct RegisteredClient: Sendable, Hashable, Codable {
    /// The client's id.
    public let id: String

    /// The server that knows the client; it is presented to no other.
    public let issuer: String

    /// The registered name of how the client authenticates.
    public let authenticationMethod: String

    /// The client's secret; `nil` if it has none.
    public let secret: String?

    /// When the secret expires, by the server's clock: register again before; `nil`: never.
    public let secretExpiration: Date?

    /// The token with which the registration can be read, changed and deleted; `nil` if there is none (RFC 7592).
    public let registrationToken: String?

    /// Where it can be, with `https`, or `http` to a loopback address; `nil` if it can't.
    public let registrationURL: URL?

    /// How the client authenticates.
    ///
    /// - Throws: `OAuthError` with the code `invalidMetadata` if the method needs something that a registration doesn't bring,
    ///   such as a key: create the client from its ``id`` then.
    public var authentication: ClientAuthentication {
        get throws {
            switch (authenticationMethod, secret) {
            case ("none", _): return .publicClient
            case ("client_secret_basic", let secret?): return .clientSecretBasic(secret)
            case ("client_secret_post", let secret?): return .clientSecretPost(secret)
            default:
                let method = ServerText.safe(authenticationMethod, hiding: [])
                throw OAuthError(
                    .invalidMetadata(
                        "The client was registered with the method \(method)\(secret == nil ? " and without a secret" : ""): create it "
                            + "from its id, with an authentication of your own"))
            }
        }
    }
}

extension RegisteredClient {
    /// Restores a client that was kept.
    public init(from decoder: any Decoder) throws {
        let kept = try decoder.container(keyedBy: CodingKeys.self)
        id = try kept.decode(String.self, forKey: .id)
        issuer = try kept.decode(String.self, forKey: .issuer)
        authenticationMethod = try kept.decode(String.self, forKey: .authenticationMethod)
        secret = try kept.decodeIfPresent(String.self, forKey: .secret)
        secretExpiration = try kept.decodeIfPresent(Date.self, forKey: .secretExpiration)
        registrationToken = try kept.decodeIfPresent(String.self, forKey: .registrationToken)
        registrationURL = try kept.decodeIfPresent(URL.self, forKey: .registrationURL)
    }
}

extension RegisteredClient: Redacted {
    /// The client's id and the server's host; no secret.
    package var text: String {
        "RegisteredClient(\(ServerText.line(id)) at \(URL(string: issuer)?.host(percentEncoded: true) ?? "nowhere"))"
    }
}

extension AuthorizationServer {
    /// Whether a client's id may be the URL of the document that ``ClientMetadata/document(at:)`` returns.
    public var acceptsClientDocuments: Bool { isTrue("client_id_metadata_document_supported") }

    /// Registers a client, with one request.
    ///
    /// Each call makes another client, so keep the result, and register again only if there is none, or if
    /// `OAuthError.refusesClient` says that the server has forgotten it. If no answer arrives, an unused client may remain.
    ///
    /// - Parameters:
    ///   - metadata: What the client says of itself.
    ///   - initialToken: A token that the server's operator gives out for registrations; `nil`: anyone may register.
    ///   - transport: Carries the request.
    ///   - timeLimit: How long it may take, 20 s unless said otherwise. Clamped to 0.1 s through one hour.
    /// - Throws: `OAuthError`, with the code `refused` and the server's words if it registers no such client, or `invalidMetadata`
    ///   if it registers none at all, or its answer has no id; or `CancellationError` when its task is cancelled.
    ///
    /// Source: RFC 7591 §3.
    @concurrent public func register(
        _ metadata: ClientMetadata, initialToken: String? = nil, transport: any TokenTransport = URLSessionTransport(),
        timeLimit: Duration = .seconds(20)
    ) async throws -> RegisteredClient {
        // MCP's Python servers look for the id in the form, and many servers don't undo the encoding of Basic.
        let method =
            metadata.authenticationMethod
            ?? members.value("token_endpoint_auth_methods_supported")?.texts.map { supported in
                ["none", "client_secret_post", "client_secret_basic"].first(where: supported.contains) ?? "none"
            }
        var headers = ["Content-Type": "application/json", "Accept": "application/json"]
        if let initialToken {
            guard HTTPToken.isVisible(initialToken) else {
                throw OAuthError(.invalidConfiguration("the initial token has a character that a header doesn't allow"))
            }
            headers["Authorization"] = "Bearer \(initialToken)"
        }
        let request = TransportRequest(
            url: try endpoint("registration_endpoint"), headers: headers, body: try metadata.json(authenticationMethod: method),
            timeLimit: timeLimit, maximumBodySize: ResponseMembers.maximumSize)
        let answer = try await OAuthClient.answer(
            toRegistration: request, hiding: [initialToken].compactMap(\.self), by: transport)
        guard let id = answer["client_id"], id.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
            throw OAuthError(.invalidMetadata("The answer to a registration at \(shown) has no client_id of printable ASCII"))
        }
        // RFC 7591 §2: basic is what an answer means that doesn't say it.
        let usual = answer["client_secret"] == nil ? "none" : "client_secret_basic"
        return RegisteredClient(
            id: id, issuer: issuer,
            authenticationMethod: answer["token_endpoint_auth_method"] ?? (method == "none" ? nil : method) ?? usual,
            secret: answer["client_secret"], secretExpiration: answer.date("client_secret_expires_at"),
            registrationToken: answer["registration_access_token"],
            registrationURL: answer["registration_client_uri"].flatMap(URL.init(string:)).flatMap {
                Origin($0)?.isPrivate == true ? $0 : nil
            })
    }

    /// Creates a client that this server has registered.
    ///
    /// - Parameters:
    ///   - registered: The client; one of another server is refused, since its secret would reach this one.
    ///   - proof: The key that the tokens are to be bound to; `nil` for bearer tokens.
    ///   - transport: Carries the requests.
    /// - Throws: `OAuthError`, which says what is missing.
    public func client(
        _ registered: RegisteredClient, proof: (any TokenProof)? = nil, transport: any TokenTransport = URLSessionTransport()
    ) throws -> OAuthClient {
        guard MetadataDocument.isSame(registered.issuer, as: issuer) else {
            throw OAuthError(.invalidConfiguration("the client was registered at another authorization server"))
        }
        var client = try client(id: registered.id, authentication: registered.authentication, proof: proof, transport: transport)
        client.isRegistered = true
        return client
    }

    /// Finds the server of an MCP server that has no metadata as a resource, as the protocol had it in March 2025.
    ///
    /// It is the MCP server's own origin: what its metadata say, or if it answers 404 where they would be, the endpoints
    /// `/authorize`, `/token` and `/register`. Such a server doesn't say that it supports PKCE, so a sign-in through it needs `requiresPKCE: false`.
    ///
    /// - Parameters:
    ///   - url: The MCP server: `https`, or `http` to a loopback address. Its path is left out.
    ///   - transport: Carries the requests.
    ///   - timeLimit: How long each request may take, 20 s unless said otherwise. Clamped to 0.1 s through one hour.
    /// - Throws: What ``discover(_:metadataURL:transport:timeLimit:)`` throws.
    ///
    /// Source: MCP 2025-03-26, Authorization §2.3.
    @concurrent public static func discover(
        atOriginOf url: URL, transport: any TokenTransport = URLSessionTransport(), timeLimit: Duration = .seconds(20)
    ) async throws -> AuthorizationServer {
        let place = try MetadataDocument.place("the resource", url.absoluteString, hasQuery: true)
        guard let issuer = URL(string: "/", relativeTo: place)?.absoluteString.dropLast() else {
            throw OAuthError(.invalidConfiguration("the resource's URL has no origin"))
        }
        do {
            return try await discover(String(issuer), transport: transport, timeLimit: timeLimit)
        } catch let error as OAuthError where error.status == 404 {
            let endpoints = ["authorization": "authorize", "token": "token", "registration": "register"]
            let members = Dictionary(uniqueKeysWithValues: endpoints.map { ("\($0)_endpoint", "\(issuer)/\($1)") })
            return AuthorizationServer(issuer: String(issuer), members: ResponseMembers(try JSONEncoder().encode(members)))
        }
    }
}
