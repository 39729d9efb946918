import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// Uses of `OAuthClient` other than secrets and refresh tokens: keys, browsers, other devices.
extension RealServerTests {
    @Test func `a client authenticates with its key, and an assertion works once and only at this server`() async throws {
        let assertion = JWTAssertion(algorithm: "RS256") { [server] in try await server.signature(of: $0) }
        // This server requires its token endpoint as the audience, not its issuer.
        let audience = server.tokenURL.absoluteString
        let assertions = Log<String>()
        let tokens = try TokenService(
            loader: ClientCredentialsLoader(
                signer {
                    let made = try await assertion.make(clientID: $0, audience: audience)
                    assertions.append(made)
                    return made
                }, scope: server.scope))
        let first = try await tokens.retrieveToken()
        await tokens.invalidate(first)
        let second = try await tokens.retrieveToken()
        #expect(first != second && assertions.entries.count == 2)
        #expect(try await server.isActive(second))

        let used = try #require(assertions.entries.last)
        let foreign = try await assertion.make(clientID: "signer", audience: "https://as.example")
        let altered = String(try await assertion.make(clientID: "signer", audience: audience).dropLast(4)) + "AAAA"
        for refused in [used, foreign, altered] {
            let client = try signer { _ in refused }
            let error = try await #require(throws: OAuthError.self) {
                try await client.token(for: .clientCredentials(scope: server.scope))
            }
            #expect(error.code == .refused && error.remedy == .clientRegistration, "\(error)")
        }
    }

    @Test func `a browser sign-in brings a token that can be refreshed, and its code works only with its verifier`() async throws
    {
        let tool = try tool()
        let (callback, grant) = try await signIn(with: tool)
        let token = try await tool.token(for: grant).token
        #expect(try await server.introspect(token.value, for: server.client).username == server.user.name)
        let refreshed = try await RefreshTokenLoader(tool).loadToken(replacing: token)
        #expect(refreshed.refreshToken != token.refreshToken && refreshed.value != token.value)

        var (_, stolen) = try await signIn(with: tool)
        #expect(throws: OAuthError.self, "of another sign-in") { try request(of: tool).grant(from: callback) }
        stolen.form.remove("code_verifier")
        stolen.form.add("code_verifier", secret: CodeVerifier().value)
        for refused in [stolen, grant] {
            let error = try await #require(throws: OAuthError.self) { try await tool.token(for: refused) }
            #expect(error.code == .refused && error.remedy == .signIn, "\(error)")
        }
    }

    @Test func `a device sign-in polls until the user has confirmed, and works once`() async throws {
        let user = ConfirmingUser(server: server)
        let signIn = try await DeviceSignIn(
            tool(over: user), deviceAuthorizationURL: server.endpoint("device_authorization"), scope: server.scope)
        user.page.complete(with: .success(try #require(signIn.verificationURIComplete.flatMap(URL.init(string:)))))
        let token = try await signIn.token().token
        #expect(user.answers.entries.map(\.status) == [200, 400, 200])
        #expect(try await server.introspect(token.value, for: server.client).username == server.user.name)
        #expect(try await RefreshTokenLoader(tool()).loadToken(replacing: token).value != token.value)

        let error = try await #require(throws: OAuthError.self) { try await signIn.token() }
        #expect(error.code == .refused && error.error == "access_denied" && error.remedy == .signIn, "\(error)")
    }

    @Test func `introspection returns a token's members, and none of a revoked or unknown one`() async throws {
        let client = try OAuthClient(
            id: server.client.id, authentication: .clientSecretBasic(server.client.secret), tokenURL: server.tokenURL)
        let token = try await client.token(for: .clientCredentials(scope: server.scope)).token
        let members = try await client.introspect(token.value, at: server.introspectionURL, hint: "access_token")
        #expect(members?["client_id"] == server.client.id && members?["scope"] == server.scope)
        try await server.revoke(token)
        #expect(try await client.introspect(token.value, at: server.introspectionURL) == nil)
        #expect(try await client.introspect("unknown", at: server.introspectionURL) == nil)
    }

    @Test func `a token is for the requested resource, and an unknown resource gets none`() async throws {
        let client = try OAuthClient(
            id: server.client.id, authentication: .clientSecretBasic(server.client.secret), tokenURL: server.tokenURL)
        var grant = Grant.clientCredentials(scope: server.scope)
        grant.form.add("resource", "https://api.example/data")
        let token = try await client.token(for: grant).token
        let members = try await client.introspect(token.value, at: server.introspectionURL)
        #expect(members?["aud"] == "https://api.example/data")

        grant.form.add("resource", "https://unknown.example")
        let error = try await #require(throws: OAuthError.self) { try await client.token(for: grant) }
        #expect(error.error == "invalid_target" && error.remedy == .clientRegistration, "\(error)")
    }

    /// Returns the client that authenticates with a key.
    private func signer(_ assertion: @escaping @Sendable (String) async throws -> String) throws -> OAuthClient {
        try OAuthClient(
            id: "signer", authentication: .assertion { id, _ in try await assertion(id) }, tokenURL: server.tokenURL,
            issuer: "unused")
    }

    /// The public client.
    private func tool(over transport: any TokenTransport = URLSessionTransport()) throws -> OAuthClient {
        try OAuthClient(id: "tool", tokenURL: server.tokenURL, transport: transport)
    }

    private func request(of tool: OAuthClient) throws -> SignInRequest {
        try SignInRequest(
            tool, authorizationURL: server.endpoint("auth"), redirectURI: "http://127.0.0.1:9/unused", scope: server.scope)
    }

    private func signIn(with tool: OAuthClient) async throws -> (callback: URL, grant: Grant) {
        let request = try request(of: tool)
        let callback = try await server.browse(request.url)
        return (callback, try request.grant(from: callback))
    }
}

/// Simulates a user who confirms a sign-in as soon as the server has told the device to wait.
private struct ConfirmingUser: TokenTransport {
    let server: RealServer
    let page = SingleResult<URL>()
    let answers = Log<TransportResponse>()

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        let answer = try await URLSessionTransport().send(request)
        answers.append(answer)
        if answer.body.contains(Data("authorization_pending".utf8)) { _ = try await server.browse(page.value()) }
        return answer
    }
}

extension RealServer {
    /// Another endpoint of the same server.
    func endpoint(_ name: String) -> URL { tokenURL.deletingLastPathComponent().appending(path: name) }

    /// Opens a page as a user who signs in and allows the public client its scope; returns the URL of the redirect.
    func browse(_ page: URL) async throws -> URL {
        try await withTemporaryFile { cookies in
            let api = "\(tokenURL.deletingLastPathComponent().deletingLastPathComponent().absoluteString)auth/"
            try await ServerProcess.run(
                "curl", "-fsS", "--noproxy", "*", "-c", cookies, "-H", "Content-Type: application/json", "-d",
                #"{"username":"\#(user.name)","password":"\#(user.password)"}"#, api)
            try await ServerProcess.run(
                "curl", "-fsS", "--noproxy", "*", "-b", cookies, "-X", "PUT", "-H", "Content-Type: application/json", "-d",
                #"{"scope":"\#(scope)"}"#, "\(api)grant/tool")
            let target = try await ServerProcess.run(
                "curl", "-fsS", "--noproxy", "*", "-b", cookies, "-o", "/dev/null", "-w", "%{redirect_url}",
                "\(page.absoluteString)&g_continue")
            return try #require(URL(string: target))
        }
    }

    /// The client's signature of some bytes, which `openssl` makes (RS256).
    func signature(of bytes: Data) async throws -> Data {
        try await withTemporaryFile { file in
            try bytes.write(to: URL(fileURLWithPath: file))
            let key = "\(process.directory)/signer.pem"
            try await ServerProcess.run("openssl", "dgst", "-sha256", "-sign", key, "-out", "\(file).signature", file)
            defer { try? FileManager.default.removeItem(atPath: "\(file).signature") }
            return try Data(contentsOf: URL(fileURLWithPath: "\(file).signature"))
        }
    }

    /// The modulus of the client's key, in hexadecimal digits.
    func modulus() async throws -> String {
        let printed = try await ServerProcess.run(
            "openssl", "rsa", "-in", "\(process.directory)/signer.pem", "-noout", "-modulus")
        return String(printed.drop { $0 != "=" }.dropFirst().prefix { $0.isHexDigit })
    }

    private func withTemporaryFile<Value>(_ body: (String) async throws -> Value) async throws -> Value {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        return try await body(file.path)
    }
}
