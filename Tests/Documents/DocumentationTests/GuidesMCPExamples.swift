import AccessTokens
import AccessTokensDiscovery
import AccessTokensOAuth
import DataLoading
import Foundation
import LoopbackServers
import Testing

// The Swift blocks of `AnMCPClient` and `AccessTokensDiscovery`, unchanged, and run.

/// Calls an MCP server.
struct MCPClient {
    let url: URL
    let loader: DataLoader

    /// Finds out who issues the server's tokens, and signs in.
    ///
    /// - Parameters:
    ///   - clientID: From the authorization server, or, if it takes such
    ///     clients, the URL of the client's metadata document.
    ///   - redirectURI: The callback's address, as the server has it.
    ///   - browse: Opens a URL in a browser, and returns the callback.
    init(
        url: URL, clientID: String, redirectURI: String,
        browse: @escaping @Sendable (URL) async throws -> URL
    ) async throws {
        let challenge = try await Self.challenge(of: url)
        let resource = try await ProtectedResource.discover(
            url.absoluteString, metadataURL: challenge.resourceMetadata)
        let server = try await AuthorizationServer.discover(
            resource.authorizationServers[0])
        let client = try server.client(id: clientID)
        let audience: Form = ["resource": resource.resource]

        @Sendable func signIn(_ scope: String) async throws -> AccessToken {
            let request = try await server.signIn(
                client, redirectURI: redirectURI, scope: scope,
                additionalParameters: audience)
            var grant = try request.grant(from: await browse(request.url))
            grant.form.add(audience)
            return try await client.token(for: grant).token
        }

        let tokens = TokenService(
            loader: try RefreshTokenLoader(
                client, additionalParameters: audience))
        let scope = challenge.scope ?? resource.scopes.joined(separator: " ")
        await tokens.replace(with: try await signIn(scope))
        let stepUp = StepUp(
            scope: scope, whenUnnamed: resource.scopes.joined(separator: " ")
        ) { scope, _ in try await signIn(scope) }
        self.url = url
        loader = DataLoaderFactory(
            tokens: try OriginTokens(tokens, for: [url], stepUp: stepUp)
        ).makeLoader()
    }

    /// Returns the server's response to a request without a token.
    private static func challenge(of url: URL) async throws -> DataLoadingError {
        do {
            _ = try await DataLoaderFactory().makeLoader()
                .perform(Request(url: url))
        } catch let error as DataLoadingError where error.code == .unauthorized {
            return error
        }
        throw URLError(.userAuthenticationRequired)
    }

    /// Sends a message of JSON-RPC, and returns the answer.
    func send(_ message: Data) async throws -> Data {
        try await loader.perform(
            Request(
                url: url, method: "POST",
                headers: [
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                ],
                body: .data(message))
        ).body
    }
}

@Suite struct `An MCP client` {
    /// Resource and authorization server on one origin; a code and a token name the scopes that were asked for.
    private func server() throws -> LoopbackServer {
        try LoopbackServer { text in
            let target = text.split(separator: " ")[1], body = text.components(separatedBy: "\r\n\r\n")[1]
            let host = text.components(separatedBy: "\r\n").first { $0.lowercased().hasPrefix("host:") }?.dropFirst(6) ?? ""
            let origin = "http://\(host)"
            switch target {
            case "/.well-known/oauth-protected-resource":
                return Self.json(
                    #"{"resource":"\#(origin)/mcp","authorization_servers":["\#(origin)"],"scopes_supported":["tools"]}"#)
            case "/.well-known/oauth-authorization-server":
                return Self.json(
                    #"{"issuer":"\#(origin)","token_endpoint":"\#(origin)/token","authorization_endpoint":"\#(origin)/authorize","#
                        + #""code_challenge_methods_supported":["S256"],"authorization_response_iss_parameter_supported":true}"#)
            case "/token":
                let code = body.split(separator: "&").first { $0.hasPrefix("code=") }?.dropFirst(5) ?? ""
                guard body.contains("resource=http"), body.contains("code_verifier=") else {
                    return Self.json(#"{"error":"invalid_target"}"#)
                }
                return Self.json(
                    #"{"access_token":"\#(code)","token_type":"Bearer","scope":"\#(code.replacing(".", with: " "))","expires_in":60}"#
                )
            default:
                let lines = text.components(separatedBy: "\r\n")
                guard let token = lines.first(where: { $0.hasPrefix("Authorization: Bearer ") })?.dropFirst(22) else {
                    let place = "\(origin)/.well-known/oauth-protected-resource"
                    return Self.status("401 No", "WWW-Authenticate: Bearer resource_metadata=\"\(place)\", scope=\"tools\"\r\n")
                }
                let needed = body.contains("write") ? "write" : "tools"
                guard token.split(separator: ".").contains(needed[...]) else {
                    return Self.status("403 No", "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"\(needed)\"\r\n")
                }
                return Self.json(#"{"jsonrpc":"2.0","result":"\#(token)"}"#)
            }
        }
    }

    private static func json(_ body: String) -> LoopbackServer.Reply {
        .bytes("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    private static func status(_ line: String, _ headers: String) -> LoopbackServer.Reply {
        .bytes("HTTP/1.1 \(line)\r\n\(headers)Content-Length: 0\r\n\r\n")
    }

    @Test func `finds its server, signs in, and gains a scope without losing one`() async throws {
        let server = try server()
        let client = try await MCPClient(
            url: server.url.deletingLastPathComponent().appending(path: "mcp"), clientID: "https://app.example/client.json",
            redirectURI: "http://127.0.0.1/callback"
        ) { url in
            let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems ?? []
            func value(_ name: String) -> String { items.first { $0.name == name }?.value ?? "" }
            let issuer = "http://127.0.0.1:\(url.port ?? 0)"
            return try #require(
                URL(
                    string:
                        "http://127.0.0.1/callback?code=\(value("scope").replacing("+", with: "."))&state=\(value("state"))&iss=\(issuer)"
                ))
        }
        #expect(String(decoding: try await client.send(Data("list".utf8)), as: UTF8.self).contains(#""result":"tools""#))
        #expect(String(decoding: try await client.send(Data("write".utf8)), as: UTF8.self).contains(#""result":"tools.write""#))
        #expect(String(decoding: try await client.send(Data("list".utf8)), as: UTF8.self).contains(#""result":"tools.write""#))
    }

    private func landing() async throws -> (OAuthClient, URL) {
        let server = try await AuthorizationServer.discover("https://login.example")
        let client = try server.client(id: "app")
        let revocationURL = try server.endpoint("revocation_endpoint")
        return (client, revocationURL)
    }
}
