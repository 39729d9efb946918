import AccessTokens
import AccessTokensDiscovery
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import Testing

struct RegistrationTests {
    static let place = "https://as.example/register"
    static let metadata = ClientMetadata(name: "Reports", redirectURIs: ["http://127.0.0.1/callback"], scope: "tools")

    /// The example of RFC 7591 §3.2.1, with secrets that can be found in texts.
    static let answer =
        #"{"client_id":"s6BhdRkqt3","client_secret":"cf136dc3-seCret","client_secret_expires_at":1893276000,"#
        + #""client_id_issued_at":2893256800,"registration_access_token":"reg-23410913-seCret","#
        + #""registration_client_uri":"https://as.example/register/s6BhdRkqt3","redirect_uris":["http://127.0.0.1/callback"],"#
        + #""token_endpoint_auth_method":"client_secret_basic","grant_types":["authorization_code","refresh_token"]}"#

    private func server(
        _ answer: TransportResponse? = nil, token: TransportResponse? = nil, _ members: String = ""
    ) async throws -> (AuthorizationServer, MetadataServer) {
        let all = #""registration_endpoint":"\#(Self.place)""# + (members.isEmpty ? "" : "," + members)
        let transport = MetadataServer([
            DiscoveryTests.known: DiscoveryTests.metadata(all), Self.place: answer ?? TransportResponse(201, Self.answer),
            "https://as.example/token": token ?? TransportResponse(status: 500),
        ])
        return (try await AuthorizationServer.discover("https://as.example", transport: transport), transport)
    }

    private func registered(_ answer: String, status: Int = 201) async throws -> RegisteredClient {
        let (server, transport) = try await server(TransportResponse(status, answer))
        return try await server.register(Self.metadata, transport: transport)
    }

    private func texts(_ value: Any) -> String {
        var dumped = ""
        dump(value, to: &dumped)
        return "\(value)" + String(reflecting: value) + dumped
    }

    @Test func `a registration is one request, and returns a value that can be stored and shows no secret`() async throws {
        let (server, transport) = try await server()
        var metadata = Self.metadata
        metadata.others = ["application_type": "native"]
        let client = try await server.register(metadata, initialToken: "initial-seCret", transport: transport)
        let request = try #require(transport.requests.last)
        #expect(transport.places.count == 2 && request.url.absoluteString == Self.place && request.method == "POST")
        #expect(request.headers["Authorization"] == "Bearer initial-seCret")
        #expect(request.headers["Content-Type"] == "application/json")
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == #"{"application_type":"native","client_name":"Reports","grant_types":["authorization_code","refresh_token"],"#
                + #""redirect_uris":["http://127.0.0.1/callback"],"response_types":["code"],"scope":"tools"}"#)
        #expect(client.id == "s6BhdRkqt3" && client.issuer == "https://as.example" && client.secret == "cf136dc3-seCret")
        #expect(client.secretExpiration == Date(timeIntervalSince1970: 1_893_276_000))
        #expect(client.registrationToken == "reg-23410913-seCret")
        #expect(client.registrationURL?.absoluteString == "https://as.example/register/s6BhdRkqt3")
        #expect("\(client)" == "RegisteredClient(s6BhdRkqt3 at as.example)" && !texts(client).contains("seCret"))
        #expect(try JSONDecoder().decode(RegisteredClient.self, from: JSONEncoder().encode(client)) == client)
        #expect(try "\(server.client(client, transport: transport))" == "OAuthClient(client s6BhdRkqt3 at as.example)")
    }

    // RFC 7591 §3.2.1: zero for never. MCP's SDKs leave it out or write null.
    @Test(
        arguments: [
            (#","client_secret_expires_at":0"#, nil), ("", nil), (#","client_secret_expires_at":null"#, nil),
            (#","client_secret_expires_at":"1893276000""#, 1_893_276_000), (#","client_secret_expires_at":-1"#, nil),
            (#","client_secret_expires_at":"never""#, nil), (#","client_secret_expires_at":[1]"#, nil),
            (#","client_secret_expires_at":"0""#, nil), (#","client_secret_expires_at":"2029-12-30T18:40:00Z""#, 1_893_350_400),
        ] as [(String, TimeInterval?)])
    func `a secret expires when the answer says so, and never if it says zero`(members: String, expected: TimeInterval?)
        async throws
    {
        let client = try await registered(#"{"client_id":"c","client_secret":"s"\#(members)}"#)
        #expect(client.secretExpiration?.timeIntervalSince1970 == expected)
    }

    // The server may replace what was asked for.
    @Test(arguments: [
        ("", "client_secret_basic", "client_secret_basic"),
        (#","token_endpoint_auth_method":"client_secret_post""#, "client_secret_post", "client_secret_post"),
        (#","token_endpoint_auth_method":"client_secret_basic""#, "client_secret_basic", "client_secret_basic"),
        (#","token_endpoint_auth_method":null"#, "client_secret_basic", "client_secret_basic"),
        (#","token_endpoint_auth_method":"none""#, "none", "none"),
    ])
    func `the authentication method that the answer names is used`(members: String, method: String, used: String) async throws {
        let client = try await registered(#"{"client_id":"c","client_secret":"s"\#(members)}"#, status: 200)
        #expect(try client.authenticationMethod == method && "\(client.authentication)" == used)
    }

    @Test(arguments: [
        (#"["client_secret_basic","client_secret_post"]"#, "client_secret_post"),
        (#"["client_secret_basic"]"#, "client_secret_basic"),
        (#"["private_key_jwt","none"]"#, "none"), (#"["private_key_jwt"]"#, "none"),
    ])
    func `a client requests an authentication method that the server lists`(methods: String, expected: String) async throws {
        let (server, transport) = try await server(nil, #""token_endpoint_auth_methods_supported":\#(methods)"#)
        _ = try await server.register(Self.metadata, transport: transport)
        let body = String(decoding: try #require(transport.requests.last).body, as: UTF8.self)
        #expect(body.contains(#""token_endpoint_auth_method":"\#(expected)""#))
    }

    // RFC 8414 §2: no list means Basic, which not every server supports alone.
    @Test(arguments: [
        (#"{"client_id":"c"}"#, "none"), (#"{"client_id":"c","client_secret":"s"}"#, "client_secret_basic"),
        (#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_post"}"#, "client_secret_post"),
    ])
    func `a server that lists no method decides, and its answer says so`(answer: String, used: String) async throws {
        let (server, transport) = try await server(TransportResponse(201, answer))
        let client = try await server.register(Self.metadata, transport: transport)
        let body = String(decoding: try #require(transport.requests.last).body, as: UTF8.self)
        #expect(try !body.contains("token_endpoint_auth_method") && "\(client.authentication)" == used)
    }

    @Test(arguments: [
        #","token_endpoint_auth_method":"private_key_jwt""#, #","token_endpoint_auth_method":"client_secret_post""#,
    ])
    func `an authentication method that needs more than the answer provides is a clear error`(members: String) async throws {
        let client = try await registered(#"{"client_id":"c"\#(members)}"#)
        let error = #expect(throws: OAuthError.self) { try client.authentication }
        #expect(
            error?.code == .invalidMetadata && "\(error.map { "\($0)" } ?? "")".contains("with an authentication of your own"))
    }

    // RFC 7591 §3.2.2, as a body of 400, and of 200.
    @Test(arguments: [400, 200], ["invalid_redirect_uri", "invalid_client_metadata", "unapproved_software_statement"])
    func `a refused registration has the server's words, and isn't retried`(status: Int, code: String) async throws {
        let body = #"{"error":"\#(code)","error_description":"http://127.0.0.1/ is not allowed, nor is initial-seCret"}"#
        let (server, transport) = try await server(TransportResponse(status, body))
        let error = try await #require(throws: OAuthError.self) {
            try await server.register(Self.metadata, initialToken: "initial-seCret", transport: transport)
        }
        #expect(error.code == .refused && error.error == code && error.remedy == .clientRegistration && !error.refusesClient)
        #expect(
            "\(error)".contains("at \(Self.place) refused to register the client: \(code), status \(status), \"http://127.0.0.1/")
        )
        #expect(!texts(error).contains("seCret"), "\(error)")
    }

    @Test func `an invalid_client answer to a registration doesn't mean a forgotten client`() async throws {
        let (server, transport) = try await server(TransportResponse(401, #"{"error":"invalid_client"}"#))
        let error = try await #require(throws: OAuthError.self) {
            try await server.register(Self.metadata, transport: transport)
        }
        #expect(error.error == "invalid_client" && !error.refusesClient)
    }

    @Test(arguments: [("https://as.example/register/c", true), ("http://as.example/c", false), ("file:///c", false)])
    func `a registration's URL is kept only if it is private`(place: String, isKept: Bool) async throws {
        let client = try await registered(#"{"client_id":"c","registration_client_uri":"\#(place)"}"#)
        #expect((client.registrationURL != nil) == isKept)
    }

    @Test func `a remote server's metadata can't name an endpoint on this machine`() async throws {
        let metadata = DiscoveryTests.metadata(#""registration_endpoint":"http://127.0.0.1:8500/v1/kv""#)
        let transport = MetadataServer([DiscoveryTests.known: metadata])
        let server = try await AuthorizationServer.discover("https://as.example", transport: transport)
        let error = try await #require(throws: OAuthError.self) {
            try await server.register(Self.metadata, transport: transport)
        }
        #expect(error.code == .invalidMetadata && transport.places.count == 1)
    }

    @Test(arguments: [429, 500, 503]) func `a registration at a server in trouble may be tried again`(status: Int) async throws {
        let (server, transport) = try await server(TransportResponse(status: status))
        let error = try await #require(throws: OAuthError.self) {
            try await server.register(Self.metadata, transport: transport)
        }
        #expect(error.remedy == .retry && "\(error)".hasSuffix("Try again later."), "\(error)")
    }

    @Test(arguments: [
        (TransportResponse(201, #"{"client_secret":"s-seCret"}"#), OAuthError.Code.invalidMetadata),
        (TransportResponse(201, #"{"client_id":"","client_secret":"s-seCret"}"#), .invalidMetadata),
        (TransportResponse(201, #"{"client_id":7,"client_secret":"s-seCret"}"#), .invalidMetadata),
        (TransportResponse(201, "{\"client_id\":\"a\\nb\",\"client_secret\":\"s-seCret\"}"), .invalidMetadata),
        (TransportResponse(201, "<html>s-seCret"), .invalidMetadata), (TransportResponse(201, ""), .invalidMetadata),
        (TransportResponse(status: 201, body: Data(count: 2 << 20)), .invalidMetadata),
        (TransportResponse(302, "", headers: ["Location": "https://evil.example"]), .redirected),
    ])
    func `an answer without a client is a clear error after one request`(
        answer: TransportResponse, code: OAuthError.Code
    ) async throws {
        let (server, transport) = try await server(answer)
        let error = try await #require(throws: OAuthError.self) {
            try await server.register(Self.metadata, transport: transport)
        }
        #expect(error.code == code && transport.places.count == 2 && !texts(error).contains("seCret"), "\(error)")
        #expect(!"\(error)".contains("token response"))
    }

    @Test func `a server without registration, or a token that no header allows, is an error before anything is sent`()
        async throws
    {
        let transport = MetadataServer([DiscoveryTests.known: DiscoveryTests.metadata()])
        let closed = try await AuthorizationServer.discover("https://as.example", transport: transport)
        let error = try await #require(throws: OAuthError.self) {
            try await closed.register(Self.metadata, transport: transport)
        }
        #expect("\(error)".contains("'registration_endpoint'") && transport.places.count == 1)
        let (open, other) = try await server()
        for token in ["a\r\nX: 1", "", "a b"] {
            await #expect(throws: OAuthError.self) {
                try await open.register(Self.metadata, initialToken: token, transport: other)
            }
        }
        #expect(other.places.count == 1)
    }

    @Test func `a client registered at another server is not presented`() async throws {
        let (server, transport) = try await server()
        let client = try await server.register(Self.metadata, transport: transport)
        let evil = MetadataServer([
            "https://evil.example/.well-known/oauth-authorization-server": DiscoveryTests.metadata(issuer: "https://evil.example")
        ])
        let other = try await AuthorizationServer.discover("https://evil.example", transport: evil)
        let error = #expect(throws: OAuthError.self) { try other.client(client, transport: evil) }
        #expect(error?.code == .invalidConfiguration)
    }

    // MCP's servers keep clients in memory, and forget them when they begin again.
    @Test(arguments: [
        (401, "invalid_client", true), (400, "unauthorized_client", true), (400, "invalid_client", true),
        (400, "invalid_grant", false), (400, "invalid_scope", false), (503, "temporarily_unavailable", false),
    ])
    func `the error distinguishes a forgotten client from a refused user`(status: Int, code: String, isForgotten: Bool)
        async throws
    {
        let (server, transport) = try await server(token: TransportResponse(status, #"{"error":"\#(code)"}"#))
        let registered = try await server.register(Self.metadata, transport: transport)
        let client = try server.client(registered, transport: transport)
        let error = try await #require(throws: OAuthError.self) { try await client.token(for: .refreshToken("r")) }
        #expect(error.refusesClient == isForgotten)
        #expect("\(error)".contains("register again, and have the user sign in again.") == isForgotten, "\(error)")
        if isForgotten { #expect(error.remedy == .clientRegistration) }
        // Without a registration there is nothing to repeat.
        let own = try server.client(id: "own", transport: transport)
        let other = try await #require(throws: OAuthError.self) { try await own.token(for: .refreshToken("r")) }
        #expect(other.refusesClient == isForgotten && !"\(other)".contains("register again"))
    }

    @Test func `a client's document names its own URL, and the metadata say whether the server accepts documents`() async throws {
        let url = try #require(URL(string: "https://app.example/client.json"))
        let document = try Self.metadata.document(at: url)
        #expect(
            String(decoding: document, as: UTF8.self)
                == #"{"client_id":"https://app.example/client.json","client_name":"Reports","#
                + #""grant_types":["authorization_code","refresh_token"],"redirect_uris":["http://127.0.0.1/callback"],"#
                + #""response_types":["code"],"scope":"tools","token_endpoint_auth_method":"none"}"#)
        #expect(try await server().0.acceptsClientDocuments == false)
        for (value, expected) in [("true", true), ("false", false), (#""true""#, false)] {
            let (server, _) = try await server(nil, #""client_id_metadata_document_supported":\#(value)"#)
            #expect(server.acceptsClientDocuments == expected)
        }
    }

    @Test(arguments: [
        "http://app.example/c.json", "http://127.0.0.1/c.json", "https://app.example", "https://app.example/",
        "https://app.example/c#x", "https://app.example/c?x=1", "https://me@app.example/c", "https://app.example/a/../c",
        "https://app.example/./c",
    ])
    func `a document's URL that the draft doesn't allow is refused`(place: String) throws {
        let url = try #require(URL(string: place))
        let error = #expect(throws: OAuthError.self) { try Self.metadata.document(at: url) }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test func `no document is made for a client with a secret`() throws {
        var metadata = Self.metadata
        metadata.authenticationMethod = "client_secret_post"
        let url = try #require(URL(string: "https://app.example/c.json"))
        #expect(throws: OAuthError.self) { try metadata.document(at: url) }
    }

    // MCP 2025-03-26 §2.3.
    @Test func `the authorization server of an older MCP server is that server's own origin`() async throws {
        let url = try #require(URL(string: "https://as.example/v1/mcp?x=1"))
        let empty = MetadataServer([:])
        let guessed = try await AuthorizationServer.discover(atOriginOf: url, transport: empty)
        #expect(try guessed.endpoint("authorization_endpoint").absoluteString == "https://as.example/authorize")
        #expect(try guessed.endpoint("token_endpoint").absoluteString == "https://as.example/token")
        #expect(try guessed.endpoint("registration_endpoint").absoluteString == Self.place)
        #expect(empty.places.first == DiscoveryTests.known)
        let client = try guessed.client(id: "c", transport: empty)
        await #expect(throws: OAuthError.self) { try await guessed.signIn(client) }
        _ = try await guessed.signIn(client, requiresPKCE: false)

        let found = MetadataServer([DiscoveryTests.known: DiscoveryTests.metadata(#""scopes_supported":["a"]"#)])
        let server = try await AuthorizationServer.discover(atOriginOf: url, transport: found)
        _ = try await server.signIn(server.client(id: "c", transport: found))
        for bad in [
            MetadataServer([DiscoveryTests.known: DiscoveryTests.metadata(issuer: "https://evil.example")]),
            MetadataServer([DiscoveryTests.known: TransportResponse(status: 503)]),
            // Something else than "there are none".
            MetadataServer([DiscoveryTests.known: TransportResponse(403, "")]),
            MetadataServer([DiscoveryTests.known: TransportResponse(200, "<html>")]),
        ] {
            await #expect(throws: OAuthError.self) {
                try await AuthorizationServer.discover(atOriginOf: url, transport: bad)
            }
        }
    }

    @Test func `a client made from metadata reads answers with the program's closure`() async throws {
        let answer = TransportResponse(#"{"access_token":"","wrapped":"t","token_type":"bot"}"#)
        let (server, transport) = try await server(token: answer)
        let client = try server.client(id: "c", acceptedTokenTypes: ["bot"], transport: transport) { members, _ in
            .token(AccessToken(members["wrapped"] ?? "", tokenType: "bot", lifetime: .seconds(60)))
        }
        let token = try await client.token(for: .clientCredentials()).token
        #expect(token.value == "t" && token.tokenType == "Bearer")
    }
}
