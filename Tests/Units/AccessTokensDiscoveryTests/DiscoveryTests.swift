import AccessTokens
import AccessTokensDiscovery
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import Testing
import TokenServiceConcurrency

/// Answers by URL, and 404 for any other.
final class MetadataServer: TokenTransport {
    private let answers: [String: TransportResponse]
    private let asked = Lock<[TransportRequest]>([])
    var places: [String] { asked.withLock { $0.map(\.url.absoluteString) } }
    var requests: [TransportRequest] { asked.withLock { $0.map(\.self) } }

    init(_ answers: [String: TransportResponse]) {
        self.answers = answers
    }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        asked.withLock { $0.append(request) }
        let answer = answers[request.url.absoluteString] ?? TransportResponse(404, "<html>", headers: [:])
        // Like every transport.
        guard answer.body.count <= request.maximumBodySize else { throw TransportError.tooLong }
        return answer
    }
}

struct DiscoveryTests {
    static let known = "https://as.example/.well-known/oauth-authorization-server"

    static func metadata(_ members: String = "", issuer: String = "https://as.example") -> TransportResponse {
        TransportResponse(
            #"{"issuer":"\#(issuer)","token_endpoint":"https://as.example/token","authorization_endpoint":"https://as.example/authorize","#
                + #""code_challenge_methods_supported":["plain","S256"]\#(members.isEmpty ? "" : ",")\#(members)}"#)
    }

    func failure(of issuer: String = "https://as.example", _ server: MetadataServer) async throws -> OAuthError {
        try await #require(throws: OAuthError.self) { try await AuthorizationServer.discover(issuer, transport: server) }
    }

    // RFC 8414 §3.1, §5; OpenID Connect Discovery §4.1. As MCP orders them.
    @Test(arguments: [
        ("https://as.example", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
        ("https://as.example/", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
        (
            "https://as.example/a/b%20c",
            [
                "/.well-known/oauth-authorization-server/a/b%20c", "/.well-known/openid-configuration/a/b%20c",
                "/a/b%20c/.well-known/openid-configuration",
            ]
        ),
    ])
    func `the metadata is looked for at each place of the specifications, in order`(issuer: String, paths: [String]) async throws
    {
        let places = paths.map { "https://as.example\($0)" }
        let empty = MetadataServer([places[0]: TransportResponse(200, "<html>no such page</html>", headers: [:])])
        let error = try await failure(of: issuer, empty)
        #expect(empty.places == places && error.code == .invalidMetadata)
        #expect(error.description.contains("\(places[0]): it is not JSON; \(places[1]): status 404"))
        for (number, place) in places.enumerated() {
            let server = MetadataServer([place: Self.metadata(issuer: issuer)])
            let found = try await AuthorizationServer.discover(issuer, transport: server)
            #expect(found.issuer == issuer && server.places.count == number + 1)
            #expect(
                server.requests.allSatisfy {
                    $0.method == "GET" && $0.body.isEmpty && $0.headers == ["Accept": "application/json"]
                })
        }
    }

    // RFC 8414 §3.3: compared as texts.
    @Test(arguments: [
        "https://as.example//", "https://AS.example", "https://AS.example/", "https://as.example:443", "https://as.example/?",
        "https://as.example/a", "https://evil.example", "https://evil.example/", "https:/as.example", "/", "\u{202E}x",
    ])
    func `metadata of another issuer is not used`(issuer: String) async throws {
        let server = MetadataServer([Self.known: Self.metadata(issuer: issuer)])
        let error = try await failure(server)
        #expect(error.code == .invalidMetadata && server.places.count == 2 && error.remedy == .retry && !error.mayBeUnderWay)
        #expect(error.status == nil && error.description.contains("; it was not used; https://as.example/"), "\(error)")
    }

    // As a gateway in front of several servers answers.
    @Test func `behind another issuer's metadata, an issuer's own is found at the next place`() async throws {
        let server = MetadataServer([
            Self.known: Self.metadata(issuer: "https://gateway.example"),
            "https://as.example/.well-known/openid-configuration": Self.metadata(),
        ])
        let found = try await AuthorizationServer.discover("https://as.example", transport: server)
        #expect(found.issuer == "https://as.example" && server.places.count == 2)
    }

    // As Google's MCP servers and their issuer.
    @Test(arguments: [("https://as.example", "https://as.example/"), ("https://as.example/", "https://as.example")])
    func `an issuer takes its metadata's spelling, with or without the slash of an empty path`(
        asked: String, named: String
    ) async throws {
        let server = MetadataServer([Self.known: Self.metadata(issuer: named)])
        let found = try await AuthorizationServer.discover(asked, transport: server)
        #expect(found.issuer == named)
        let client = try found.client(id: "app", transport: server)
        let request = try await found.signIn(client, redirectURI: "app:/in")
        let state = try #require(
            URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems?.first { $0.name == "state" })
        func grant(_ issuer: String) throws -> Grant {
            let issuer = issuer.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            return try request.grant(from: #require(URL(string: "app:/in?code=c&state=\(state.value ?? "")&iss=\(issuer)")))
        }
        _ = try grant(named)
        // RFC 9207 §2.4: the comparison in a callback stays exact.
        #expect(throws: OAuthError.self) { try grant(asked) }
    }

    @Test(arguments: [("https://as.example/a", "https://as.example/a/"), ("https://as.example/a/", "https://as.example/a")])
    func `an issuer whose path differs in the final slash is another one`(asked: String, named: String) async throws {
        let server = MetadataServer([Self.known + "/a": Self.metadata(issuer: named)])
        #expect(try await failure(of: asked, server).description.contains("; it was not used; "))
    }

    // As PagerDuty's and Atlassian's servers need it.
    @Test func `a program may give the metadata's URL itself`() async throws {
        let place = "https://id.example/elsewhere?tenant=1"
        let server = MetadataServer([place: Self.metadata()])
        let found = try await AuthorizationServer.discover(
            "https://as.example", metadataURL: URL(string: place), transport: server)
        #expect(found.issuer == "https://as.example" && server.places == [place])
        let other = MetadataServer([place: Self.metadata(issuer: "https://evil.example")])
        await #expect(throws: OAuthError.self) {
            try await AuthorizationServer.discover("https://as.example", metadataURL: URL(string: place), transport: other)
        }
        for bad in ["http://id.example/", "https://a@id.example/", "https://id.example/#x", "/x"] {
            let error = await #expect(throws: OAuthError.self) {
                try await AuthorizationServer.discover("https://as.example", metadataURL: URL(string: bad), transport: server)
            }
            #expect(error?.code == .invalidConfiguration && server.places == [place])
        }
    }

    @Test(arguments: [
        "http://as.example", "https://as.example?a=b", "https://as.example#x", "https://me:word@as.example", "as.example", "",
        "ftp://as.example", "https://as.example/\u{E9}", "http://localhost.evil.example",
    ])
    func `an issuer that isn't a private URL is refused before anything is sent`(issuer: String) async throws {
        let server = MetadataServer([:])
        let error = try await failure(of: issuer, server)
        #expect(error.code == .invalidConfiguration && server.places == [] && !error.description.contains("me:"))
    }

    @Test func `a loopback address may do without TLS`() async throws {
        let place = "http://127.0.0.1:8080/.well-known/oauth-authorization-server"
        let server = MetadataServer([place: Self.metadata(issuer: "http://127.0.0.1:8080")])
        #expect(
            try await AuthorizationServer.discover("http://127.0.0.1:8080", transport: server).issuer == "http://127.0.0.1:8080")
    }

    @Test(arguments: [
        (TransportResponse(status: 200, body: Data(count: 2 << 20)), "is longer than 1048576 bytes"),
        (TransportResponse(status: 429), "is unavailable (status 429). Try again later"),
        (TransportResponse(status: 408), "is unavailable (status 408). Try again later"),
    ])
    func `a document that is too long, or a server that asks for a pause, is a clear error after one request`(
        answer: TransportResponse, problem: String
    ) async throws {
        let server = MetadataServer([Self.known: answer])
        let error = try await failure(server)
        #expect(error.code == .invalidMetadata && error.description.contains(problem), "\(error)")
        #expect(server.places.count == 1)
    }

    static let noMetadata: [(TransportResponse, String)] = [
        (
            TransportResponse(status: 302, headers: ["Location": "https://evil.example"]),
            "status 302, a redirect, which is not followed"
        ),
        (TransportResponse(status: 301), "status 301, a redirect, which is not followed"),
        (TransportResponse("{}"), "it names no issuer"), (TransportResponse(#"{"error":"not found"}"#), "it names no issuer"),
        (TransportResponse(#"{"issuer":"https://as.example","issuer":"https://as.example"}"#), "it names no issuer"),
        (TransportResponse(#"{"issuer":["https://as.example"]}"#), "it names no issuer"),
        (TransportResponse("[]"), "not a JSON object"),
        (TransportResponse("issuer=https://as.example"), "it is not JSON"), (TransportResponse(""), "it is empty"),
        (TransportResponse(500, ""), "is unavailable (status 500). Try again later"),
        (TransportResponse(502, "<html>"), "is unavailable (status 502). Try again later"),
        (TransportResponse(503, #"{"issuer":"https://as.example"}"#), "is unavailable (status 503). Try again later"),
        (TransportResponse(403, ""), "status 403"), (TransportResponse(201, "{}"), "status 201"),
    ]

    // WSO2, Nextcloud, and gateways without such a route.
    @Test(arguments: noMetadata)
    func `a place without metadata is skipped for the next one, whatever it answers`(
        answer: TransportResponse, problem: String
    ) async throws {
        let second = "https://as.example/.well-known/openid-configuration"
        let server = MetadataServer([Self.known: answer, second: Self.metadata()])
        #expect(try await AuthorizationServer.discover("https://as.example", transport: server).issuer == "https://as.example")
        #expect(server.places == [Self.known, second])
        let alone = MetadataServer([Self.known: answer])
        let error = try await failure(alone)
        #expect(alone.places == [Self.known, second])
        #expect(error.code == .invalidMetadata && error.description.contains(problem), "\(error)")
        #expect(error.status == (answer.status >= 500 ? answer.status : nil))
        // If the first place is silent, another server's metadata at the second one are not used.
        await #expect(throws: OAuthError.self) {
            let evil = MetadataServer([Self.known: answer, second: Self.metadata(issuer: "https://evil.example")])
            return try await AuthorizationServer.discover("https://as.example", transport: evil)
        }
    }

    func found(_ members: String, without: String = "") async throws -> AuthorizationServer {
        let body = String(decoding: Self.metadata(members).body, as: UTF8.self)
        let server = MetadataServer([
            Self.known: TransportResponse(without.isEmpty ? body : body.replacing(without, with: "\"other\""))
        ])
        return try await AuthorizationServer.discover("https://as.example", transport: server)
    }

    @Test func `a server's metadata gives a client, a sign-in and an endpoint in one call each`() async throws {
        let server = try await found(
            #""revocation_endpoint":"https://as.example/revoke","token_endpoint_auth_methods_supported":["none"]"#)
        let client = try server.client(id: "app", transport: MetadataServer([:]))
        #expect(client.issuer == "https://as.example")
        let request = try await server.signIn(
            client, redirectURI: "app:/in", scope: "a b", additionalParameters: ["resource": "https://r"])
        #expect(request.url.absoluteString.hasPrefix("https://as.example/authorize?client_id=app&response_type=code&"))
        #expect(
            request.url.absoluteString.contains("&resource=https%3A%2F%2Fr") && !request.url.absoluteString.contains("dpop_jkt"))
        #expect(try server.endpoint("revocation_endpoint").absoluteString == "https://as.example/revoke")
        let error = #expect(throws: OAuthError.self) { try server.client(id: "app", authentication: .clientSecretPost("s")) }
        #expect(error?.description.contains("https://as.example doesn't support client_secret_post; it supports: none") == true)
    }

    @Test(arguments: ["\"token_endpoint\"", "\"authorization_endpoint\"", "\"code_challenge_methods_supported\"", "\"S256\""])
    func `the error names what the metadata lack`(name: String) async throws {
        let server = try await found("", without: name)
        let error = try await #require(throws: OAuthError.self) {
            _ = try await server.signIn(server.client(id: "app", transport: MetadataServer([:])))
        }
        #expect(error.code == .invalidMetadata)
        #expect(error.description.contains(name.filter { $0 != "\"" }), "\(error)")
    }

    @Test func `an endpoint without TLS is refused`() async throws {
        let server = try await found(#""revocation_endpoint":"http://as.example/revoke""#)
        let error = #expect(throws: OAuthError.self) { try server.endpoint("revocation_endpoint") }
        #expect(
            error?.code == .invalidMetadata
                && error?.description.contains("'revocation_endpoint' of https://as.example must begin") == true)
        #expect(throws: OAuthError.self) { try server.endpoint("introspection_endpoint") }
    }

    // RFC 9207 §2.4.
    @Test func `a server whose metadata promise its issuer in callbacks must name it there`() async throws {
        let server = try await found(#""authorization_response_iss_parameter_supported":true"#)
        let request = try await server.signIn(server.client(id: "app", transport: MetadataServer([:])), redirectURI: "app:/in")
        let state = try #require(
            URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems?.first { $0.name == "state" }?.value)
        let callback = try #require(URL(string: "app:/in?code=c&state=\(state)"))
        #expect(throws: OAuthError.self) { try request.grant(from: callback) }
        _ = try request.grant(from: #require(URL(string: "app:/in?code=c&state=\(state)&iss=https%3A%2F%2Fas.example")))
    }

    // RFC 9126 §2.1, §2.2, §4.
    @Test func `a server that demands it gets the sign-in's parameters directly, and the browser only a reference`() async throws
    {
        let pushed = "https://as.example/par"
        let server = try await found(
            #""require_pushed_authorization_requests":true,"pushed_authorization_request_endpoint":"\#(pushed)""#)
        let transport = MetadataServer([pushed: TransportResponse(201, #"{"request_uri":"urn:x:1","expires_in":60}"#)])
        for authentication in [ClientAuthentication.publicClient, .clientSecretBasic("s")] {
            let client = try server.client(id: "app", authentication: authentication, transport: transport)
            let request = try await server.signIn(client, redirectURI: "app:/in", scope: "a")
            #expect(request.url.absoluteString == "https://as.example/authorize?client_id=app&request_uri=urn%3Ax%3A1")
            let sent = String(decoding: try #require(transport.requests.last).body, as: UTF8.self)
            #expect(
                sent.contains("code_challenge=") && sent.contains("scope=a")
                    && sent.components(separatedBy: "client_id=app").count == 2)
        }
        let silent = MetadataServer([pushed: TransportResponse(201, #"{"expires_in":60}"#)])
        let error = await #expect(throws: OAuthError.self) {
            try await server.signIn(server.client(id: "app", transport: silent), redirectURI: "app:/in")
        }
        #expect(error?.code == .unreadableResponse)
    }

    @Test func `a sign-in with another server's client is refused`() async throws {
        let client = try OAuthClient(
            id: "app", tokenURL: #require(URL(string: "https://other.example/token")), issuer: "https://other.example")
        let server = try await found("")
        let error = await #expect(throws: OAuthError.self) { try await server.signIn(client) }
        #expect(error?.code == .invalidConfiguration)
    }
}

struct ProtectedResourceTests {
    static let resource = "https://api.example/mcp"
    static let known = "https://api.example/.well-known/oauth-protected-resource/mcp"

    func answer(_ resource: String = Self.resource, _ members: String = #""authorization_servers":["https://as.example"]"#)
        -> TransportResponse
    {
        TransportResponse(#"{"resource":"\#(resource)","scopes_supported":["a","b"],\#(members)}"#)
    }

    @Test func `a resource's metadata name the servers whose tokens it accepts`() async throws {
        let server = MetadataServer([Self.known: answer()])
        let found = try await ProtectedResource.discover(Self.resource, transport: server)
        #expect(found.authorizationServers == ["https://as.example"] && found.scopes == ["a", "b"])
        let named = try #require(URL(string: "https://api.example/elsewhere?x=1"))
        let other = MetadataServer([named.absoluteString: answer()])
        _ = try await ProtectedResource.discover(Self.resource, metadataURL: named, transport: other)
        #expect(other.places == [named.absoluteString])
    }

    @Test(arguments: [
        "https://evil.example/x", "http://api.example/x", "https://api.example:444/x", "https://169.254.169.254/", "/x",
        "https://a@api.example/",
    ])
    func `metadata at another origin than the resource's are not requested`(place: String) async throws {
        let server = MetadataServer([:])
        let error = await #expect(throws: OAuthError.self) {
            try await ProtectedResource.discover(Self.resource, metadataURL: URL(string: place), transport: server)
        }
        #expect(error?.code == .invalidMetadata && error?.description.contains("nothing was sent") == true && server.places == [])
    }

    // RFC 9728 §3.1 keeps the slash at the end of a path, and the query.
    @Test(arguments: [
        ("https://api.example/mcp", ["/mcp"]), ("https://api.example/mcp/", ["/mcp/", "/mcp"]),
        ("https://api.example", [""]), ("https://api.example/", [""]),
        ("https://api.example/mcp?tenant=a%20b", ["/mcp?tenant=a%20b"]),
        ("https://api.example/mcp/?t=/", ["/mcp/?t=/", "/mcp?t=/"]),
        ("https://api.example?t=1", ["?t=1"]),
    ])
    func `a resource's metadata are looked for at the most specific place first`(resource: String, places: [String]) async throws
    {
        let places = places.map { "https://api.example/.well-known/oauth-protected-resource\($0)" }
        let empty = MetadataServer([:])
        await #expect(throws: OAuthError.self) { try await ProtectedResource.discover(resource, transport: empty) }
        #expect(empty.places == places)
        for (number, place) in places.enumerated() {
            let server = MetadataServer([place: answer(resource)])
            #expect(try await ProtectedResource.discover(resource, transport: server).resource == resource)
            #expect(server.places.count == number + 1)
        }
    }

    @Test(arguments: [("https://api.example", "https://api.example/"), ("https://api.example/", "https://api.example")])
    func `a resource takes its metadata's spelling, with or without the slash of an empty path`(
        asked: String, named: String
    ) async throws {
        let server = MetadataServer(["https://api.example/.well-known/oauth-protected-resource": answer(named)])
        #expect(try await ProtectedResource.discover(asked, transport: server).resource == named)
    }

    @Test(arguments: ["https://api.example?t=1", "https://api.example/?t=/"])
    func `a resource whose query differs in a slash is another one`(resource: String) async throws {
        for other in [resource + "/", String(resource.dropLast())] {
            let place = "https://api.example/.well-known/oauth-protected-resource" + resource.dropFirst(19).drop { $0 == "/" }
            let server = MetadataServer([place: answer(other)])
            let error = await #expect(throws: OAuthError.self) {
                try await ProtectedResource.discover(resource, transport: server)
            }
            #expect(error?.description.contains("belongs to another resource") == true, "\(place)")
        }
    }

    // Servers of MCP that describe only their origin.
    @Test(arguments: ["https://api.example", "https://api.example/", Self.resource])
    func `metadata of the whole origin is used only if the program accepts it`(named: String) async throws {
        let root = "https://api.example/.well-known/oauth-protected-resource"
        let server = MetadataServer([root: answer(named)])
        await #expect(throws: OAuthError.self) { try await ProtectedResource.discover(Self.resource, transport: server) }
        #expect(server.places == [Self.known])
        let found = try await ProtectedResource.discover(Self.resource, acceptsOrigin: true, transport: server)
        #expect(found.resource == named && server.places == [Self.known, Self.known, root])
        let evil = MetadataServer([root: answer("https://api.example/other")])
        await #expect(throws: OAuthError.self) {
            try await ProtectedResource.discover(Self.resource, acceptsOrigin: true, transport: evil)
        }
    }

    // Another tenant of the origin answers at its own path, and wants a token for the whole.
    @Test func `a path doesn't speak for its origin, even if the program accepts metadata of the origin`() async throws {
        let root = "https://api.example/.well-known/oauth-protected-resource"
        for place in ["https://api.example/mcp/metadata", root + "/other"] {
            let server = MetadataServer([place: answer("https://api.example")])
            let error = await #expect(throws: OAuthError.self) {
                try await ProtectedResource.discover(
                    Self.resource, metadataURL: URL(string: place), acceptsOrigin: true, transport: server)
            }
            #expect(error?.description.contains("belongs to another resource") == true && server.places == [place])
        }
        let server = MetadataServer([root: answer("https://api.example")])
        _ = try await ProtectedResource.discover(
            Self.resource, metadataURL: URL(string: root), acceptsOrigin: true, transport: server)
    }

    @Test(arguments: [TransportResponse(403, ""), TransportResponse(200, "<html>"), TransportResponse("{}"), nil])
    func `that there are no metadata is told from metadata of no use`(answer: TransportResponse?) async throws {
        let server = MetadataServer(answer.map { [Self.known: $0] } ?? [:])
        let error = await #expect(throws: OAuthError.self) {
            try await ProtectedResource.discover(Self.resource, acceptsOrigin: true, transport: server)
        }
        #expect(error?.status == (answer == nil ? 404 : nil) && server.places.count == 2)
    }

    // RFC 9728 §3.3.
    @Test(arguments: ["https://api.example", "https://api.example/mcp/", "https://evil.example/mcp"])
    func `metadata of another resource is not used`(resource: String) async throws {
        let server = MetadataServer([Self.known: answer(resource)])
        let error = await #expect(throws: OAuthError.self) {
            try await ProtectedResource.discover(Self.resource, transport: server)
        }
        #expect(error?.description.contains("belongs to another resource, \(resource); it was not used") == true)
    }

    @Test(arguments: [
        #""x":1"#, #""authorization_servers":[]"#, #""authorization_servers":"https://as.example""#,
        #""authorization_servers":[1]"#,
    ])
    func `a resource without an authorization server is a clear error`(members: String) async throws {
        let server = MetadataServer([Self.known: answer(Self.resource, members)])
        let error = await #expect(throws: OAuthError.self) {
            try await ProtectedResource.discover(Self.resource, transport: server)
        }
        #expect(error?.description == "The metadata at \(Self.known) names no authorization server.")
    }
}

extension TransportResponse {
    init(_ body: String) {
        self.init(200, body)
    }

    init(_ status: Int, _ body: String, headers: [String: String] = ["Content-Type": "application/json"]) {
        self.init(status: status, headers: headers, body: Data(body.utf8))
    }
}
