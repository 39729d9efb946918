import AccessTokens
import AccessTokensDiscovery
import AccessTokensFiles
import AccessTokensOAuth
import DataLoading
import Foundation
import LoopbackServers
import Synchronization
import Testing

// The Swift blocks of `AnMCPClient` and `AccessTokensDiscovery`, unchanged, and run.

/// What an MCP client needs of the program around it.
struct MCPHost: Sendable {
    /// What the client says of itself to a server that it meets.
    let metadata: ClientMetadata
    /// Where its document is, if it has one.
    let documentURL: URL?
    /// Reads, and keeps or forgets, the registration at an issuer.
    let registration: @Sendable (String) async throws -> RegisteredClient?
    let keep: @Sendable (RegisteredClient?, String) async throws -> Void
    /// Keeps the tokens of an issuer, and those of no other, whose
    /// refresh token this one would get.
    let store: @Sendable (String) -> any TokenStore
    /// Whether servers from before June 2025 are welcome.
    var acceptsOlderServers = false
    /// Opens a URL in a browser, and returns the callback.
    let browse: @Sendable (URL) async throws -> URL
}

/// Calls an MCP server, also one that it has never met.
struct MCPClient {
    let url: URL
    let host: MCPHost
    let server: AuthorizationServer
    let client: OAuthClient
    let tokens: TokenService
    let loader: DataLoader

    /// Finds out who issues the server's tokens, registers unless that
    /// has been done, and signs in unless a user is signed in.
    init(url: URL, host: MCPHost) async throws {
        let challenge = try await Self.challenge(of: url)
        let resource = try await Self.resource(at: url, challenge, host)
        let server =
            if let resource {
                try await AuthorizationServer.discover(
                    resource.authorizationServers[0])
            } else {
                try await AuthorizationServer.discover(atOriginOf: url)
            }
        let all = resource?.scopes.joined(separator: " ") ?? ""
        let client = try await Self.client(of: server, host, scope: all)
        let audience: Form = [
            "resource": resource?.resource ?? url.absoluteString
        ]

        @Sendable func signIn(
            _ scope: String
        ) async throws -> AccessToken {
            let request = try await server.signIn(
                client, redirectURI: host.metadata.redirectURIs[0],
                scope: scope, additionalParameters: audience,
                requiresPKCE: resource != nil)
            var grant = try request.grant(
                from: await host.browse(request.url))
            grant.form.add(audience)
            do {
                return try await client.token(for: grant).token
            } catch let error as OAuthError where error.refusesClient {
                try await host.keep(nil, server.issuer)
                throw error
            }
        }

        let tokens = TokenService(
            store: host.store(server.issuer),
            loader: try RefreshTokenLoader(
                client, additionalParameters: audience))
        let scope = challenge.scope ?? all
        if await tokens.signInState().code == .signedOut {
            await tokens.replace(with: try await signIn(scope))
        }
        let stepUp = StepUp(scope: scope, whenUnnamed: all) { scope, _ in
            try await signIn(scope)
        }
        (self.url, self.host, self.server) = (url, host, server)
        (self.client, self.tokens) = (client, tokens)
        loader = DataLoaderFactory(
            tokens: try OriginTokens(tokens, for: [url], stepUp: stepUp)
        ).makeLoader()
    }

    /// Returns the server's response to a request without a token.
    private static func challenge(of url: URL) async throws
        -> DataLoadingError
    {
        do {
            _ = try await DataLoaderFactory().makeLoader()
                .perform(Request(url: url))
        } catch let error as DataLoadingError
            where error.code == .unauthorized
        {
            return error
        }
        throw URLError(.userAuthenticationRequired)
    }

    /// Returns the server's metadata; `nil`: an older one's, without any.
    private static func resource(
        at url: URL, _ challenge: DataLoadingError, _ host: MCPHost
    ) async throws -> ProtectedResource? {
        do {
            return try await ProtectedResource.discover(
                url.absoluteString,
                metadataURL: challenge.resourceMetadata)
        } catch let error as OAuthError
            where host.acceptsOlderServers
            && challenge.resourceMetadata == nil
            && error.status == 404
        {
            return nil
        }
    }

    /// Returns the client that the authorization server knows.
    private static func client(
        of server: AuthorizationServer, _ host: MCPHost, scope: String
    ) async throws -> OAuthClient {
        if server.acceptsClientDocuments,
            let document = host.documentURL
        {
            return try server.client(id: document.absoluteString)
        }
        if let kept = try await host.registration(server.issuer) {
            return try server.client(kept)
        }
        // Some servers grant no scope that the client wasn't registered
        // with.
        var metadata = host.metadata
        if metadata.scope == nil, !scope.isEmpty {
            metadata.scope = scope
        }
        let registered = try await server.register(metadata)
        try await host.keep(registered, server.issuer)
        return try server.client(registered)
    }

    /// Sends a message of JSON-RPC, and returns the answer.
    func send(_ message: Data) async throws -> Data {
        do {
            return try await loader.perform(
                Request(
                    url: url, method: "POST",
                    headers: [
                        "Content-Type": "application/json",
                        "Accept": "application/json, text/event-stream",
                    ],
                    body: .data(message))
            ).body
        } catch let error as TokenServiceError {
            // Make another client then, which registers again.
            if (error.underlying as? OAuthError)?.refusesClient == true {
                try await host.keep(nil, server.issuer)
                _ = await tokens.reset()
            }
            throw error
        }
    }

    /// Forgets the token, and tells the server if it wants to know.
    func signOut() async throws {
        let place = try? server.endpoint("revocation_endpoint")
        for token in await tokens.reset().discarded {
            if let place { try await client.revoke(token, at: place) }
        }
    }
}

@Suite struct `An MCP client` {
    /// Resource and authorization server on one origin; a code and a token name the scopes that were asked for.
    ///
    /// - Parameters:
    ///   - log: Gets a line for each registration, token and revocation.
    ///   - members: More members of the metadata.
    ///   - isOlder: Whether the server is one of March 2025: without metadata, and without a word in its 401.
    ///   - useless: What it answers all the same where metadata of the resource would be.
    ///   - knows: Whether the server knows the clients that it has registered.
    private func server(
        _ log: GuideLog, _ members: String = "", isOlder: Bool = false, useless: LoopbackServer.Reply? = nil,
        knows: @escaping @Sendable () -> Bool = { true }
    ) throws -> LoopbackServer {
        try LoopbackServer { text in
            let target = text.split(separator: " ")[1], body = text.components(separatedBy: "\r\n\r\n")[1]
            let host = text.components(separatedBy: "\r\n").first { $0.lowercased().hasPrefix("host:") }?.dropFirst(6) ?? ""
            let origin = "http://\(host)"
            if let useless, target == "/.well-known/oauth-protected-resource/mcp" { return useless }
            switch target {
            case "/.well-known/oauth-protected-resource" where !isOlder:
                return Self.json(
                    #"{"resource":"\#(origin)/mcp","authorization_servers":["\#(origin)"],"scopes_supported":["tools"]}"#)
            case "/.well-known/oauth-authorization-server" where !isOlder:
                return Self.json(
                    #"{"issuer":"\#(origin)","token_endpoint":"\#(origin)/token","authorization_endpoint":"\#(origin)/authorize","#
                        + #""registration_endpoint":"\#(origin)/register","revocation_endpoint":"\#(origin)/revoke","#
                        + #""code_challenge_methods_supported":["S256"],"authorization_response_iss_parameter_supported":true"#
                        + "\(members)}")
            case "/register":
                log.add(
                    "registered \(body.contains(#""client_name":"Tools""#) && body.contains(#""scope":"tools""#) != isOlder)")
                return Self.json(#"{"client_id":"c1","client_secret":"s1","token_endpoint_auth_method":"client_secret_post"}"#)
            case "/revoke":
                log.add("revoked")
                return Self.json("{}")
            case "/token":
                let code = body.split(separator: "&").first { $0.hasPrefix("code=") }?.dropFirst(5) ?? ""
                log.add("token for \(body.split(separator: "&").first { $0.hasPrefix("client_id=") } ?? "")")
                guard knows() else { return Self.json(#"{"error":"invalid_client"}"#) }
                guard body.contains("resource=http"), body.contains("code_verifier=") else {
                    return Self.json(#"{"error":"invalid_target"}"#)
                }
                return Self.json(
                    #"{"access_token":"\#(code)","token_type":"Bearer","scope":"\#(code.replacing(".", with: " "))","#
                        + #""refresh_token":"r1","expires_in":60}"#
                )
            case "/mcp":
                let lines = text.components(separatedBy: "\r\n")
                guard let token = lines.first(where: { $0.hasPrefix("Authorization: Bearer ") })?.dropFirst(22) else {
                    let place = "\(origin)/.well-known/oauth-protected-resource"
                    let words = isOlder ? "" : "WWW-Authenticate: Bearer resource_metadata=\"\(place)\", scope=\"tools\"\r\n"
                    return Self.status("401 No", words)
                }
                let needed = body.contains("write") ? "write" : "tools"
                guard isOlder || token.split(separator: ".").contains(needed[...]) else {
                    return Self.status("403 No", "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"\(needed)\"\r\n")
                }
                return Self.json(#"{"jsonrpc":"2.0","result":"\#(token)"}"#)
            default: return Self.status("404 Not Found", "")
            }
        }
    }

    private static func json(_ body: String) -> LoopbackServer.Reply {
        .bytes("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    private static func status(_ line: String, _ headers: String) -> LoopbackServer.Reply {
        .bytes("HTTP/1.1 \(line)\r\n\(headers)Content-Length: 0\r\n\r\n")
    }

    /// A program that keeps its registration and its token for the next client.
    private func program(
        _ kept: Mutexed<RegisteredClient>, _ log: GuideLog, documentURL: URL? = nil, acceptsOlderServers: Bool = false,
        directory: TemporaryDirectory
    ) -> MCPHost {
        MCPHost(
            metadata: ClientMetadata(name: "Tools", redirectURIs: ["http://127.0.0.1/callback"]), documentURL: documentURL,
            registration: { issuer in kept.value.flatMap { $0.issuer == issuer ? $0 : nil } },
            keep: { client, _ in kept.set(client) },
            store: { FileTokenStore(path: directory.path + "/token-\($0.split(separator: ":").last ?? "")") },
            acceptsOlderServers: acceptsOlderServers
        ) { url in
            log.add("browsed")
            let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems ?? []
            func value(_ name: String) -> String { items.first { $0.name == name }?.value ?? "" }
            let issuer = "http://127.0.0.1:\(url.port ?? 0)"
            let code = value("scope").isEmpty ? "none" : value("scope").replacing("+", with: ".")
            return try #require(
                URL(string: "http://127.0.0.1/callback?code=\(code)&state=\(value("state"))&iss=\(issuer)"))
        }
    }

    private func url(of server: LoopbackServer) -> URL { server.url.deletingLastPathComponent().appending(path: "mcp") }

    private func answer(_ client: MCPClient, to message: String) async throws -> String {
        String(decoding: try await client.send(Data(message.utf8)), as: UTF8.self)
    }

    @Test func `discovers a server, registers, signs in, and gains a scope without losing one`() async throws {
        let log = GuideLog(), kept = Mutexed<RegisteredClient>(), server = try server(log)
        let directory = try TemporaryDirectory()
        let host = program(kept, log, directory: directory)
        let client = try await MCPClient(url: url(of: server), host: host)
        #expect(log.lines == ["registered true", "browsed", "token for client_id=c1"] && kept.value?.id == "c1")
        #expect(try await answer(client, to: "list").contains(#""result":"tools""#))
        #expect(try await answer(client, to: "write").contains(#""result":"tools.write""#))
        #expect(try await answer(client, to: "list").contains(#""result":"tools.write""#))
        #expect(log.lines.suffix(2) == ["browsed", "token for client_id=c1"])

        // The next run finds both the registration and the token.
        let count = log.lines.count
        let next = try await MCPClient(url: url(of: server), host: host)
        #expect(try await answer(next, to: "write").contains(#""result":"tools.write""#))
        #expect(log.lines.count == count)

        try await next.signOut()
        #expect(log.lines.dropFirst(count) == ["revoked"] && kept.value != nil)
        #expect(await next.tokens.signInState().code == .signedOut)
    }

    @Test func `registers again once the server has forgotten the client`() async throws {
        let log = GuideLog(), kept = Mutexed<RegisteredClient>(), isKnown = Mutexed<Bool>(false)
        let server = try server(log, knows: { isKnown.value == true })
        let directory = try TemporaryDirectory()
        let host = program(kept, log, directory: directory)
        let error = await #expect(throws: OAuthError.self) { try await MCPClient(url: url(of: server), host: host) }
        #expect(error?.refusesClient == true && kept.value == nil)
        isKnown.set(true)
        _ = try await MCPClient(url: url(of: server), host: host)
        #expect(log.lines.filter { $0 == "registered true" }.count == 2 && kept.value != nil)
    }

    @Test func `sends neither a registration nor a token to another authorization server`() async throws {
        let log = GuideLog(), kept = Mutexed<RegisteredClient>(), directory = try TemporaryDirectory()
        let host = program(kept, log, directory: directory), first = try server(log), second = try server(log)
        _ = try await MCPClient(url: url(of: first), host: host)
        _ = try await MCPClient(url: url(of: second), host: host)
        #expect(log.lines.filter { $0 == "registered true" }.count == 2 && log.lines.filter { $0 == "browsed" }.count == 2)
    }

    @Test func `needs no registration if the server reads the client's document`() async throws {
        let log = GuideLog(), kept = Mutexed<RegisteredClient>()
        let server = try server(log, #","client_id_metadata_document_supported":true"#)
        let directory = try TemporaryDirectory()
        let document = try #require(URL(string: "https://app.example/client.json"))
        let host = program(kept, log, documentURL: document, directory: directory)
        _ = try await MCPClient(url: url(of: server), host: host)
        #expect(log.lines == ["browsed", "token for client_id=https%3A%2F%2Fapp.example%2Fclient.json"])
    }

    @Test func `signs in at a server of the March 2025 specification if the program allows it`() async throws {
        let log = GuideLog(), kept = Mutexed<RegisteredClient>(), server = try server(log, isOlder: true)
        let directory = try TemporaryDirectory()
        await #expect(throws: OAuthError.self) {
            try await MCPClient(url: url(of: server), host: program(kept, log, directory: directory))
        }
        #expect(log.lines == [])
        let host = program(kept, log, acceptsOlderServers: true, directory: directory)
        let client = try await MCPClient(url: url(of: server), host: host)
        #expect(try await answer(client, to: "list").contains(#""result":"none""#))
        #expect(log.lines == ["registered true", "browsed", "token for client_id=c1"])
    }

    @Test(arguments: [
        json(#"{"resource":"http://127.0.0.1/other","authorization_servers":["http://127.0.0.1:1"]}"#), json("{"), json("{}"),
        status("403 No", ""), status("302 Found", "Location: /\r\n"), status("500 No", ""),
    ])
    func `takes no server for an older one whose metadata can't be used`(useless: LoopbackServer.Reply) async throws {
        let log = GuideLog(), kept = Mutexed<RegisteredClient>(), directory = try TemporaryDirectory()
        let server = try server(log, isOlder: true, useless: useless)
        await #expect(throws: OAuthError.self) {
            try await MCPClient(
                url: url(of: server), host: program(kept, log, acceptsOlderServers: true, directory: directory))
        }
        #expect(log.lines == [])
    }

    private func landing() async throws -> (OAuthClient, URL) {
        let server = try await AuthorizationServer.discover(
            "https://login.example")
        let client = try server.client(id: "app")
        let revocationURL = try server.endpoint("revocation_endpoint")
        return (client, revocationURL)
    }
}

/// A value that closures share.
private final class Mutexed<Value: Sendable>: Sendable {
    private let contents: Mutex<Value?>

    init(_ value: Value? = nil) { contents = Mutex(value) }

    var value: Value? { contents.withLock { $0 } }

    func set(_ value: Value?) { contents.withLock { $0 = value } }
}

/// A directory that ends with the test.
private final class TemporaryDirectory: Sendable {
    let path = FileManager.default.temporaryDirectory.appending(path: "mcp-\(UUID().uuidString)").path

    init() throws {
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
