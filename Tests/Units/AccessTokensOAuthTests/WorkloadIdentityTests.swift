import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import LoopbackServers
import TestBudgets
import Testing

/// Servers that follow the platforms' documentation: each accepts exactly the documented form.
@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct WorkloadIdentityTests {
    func sent(to transport: ScriptedTransport) throws -> [String: String] {
        let request = try #require(transport.requests.first)
        #expect(request.headers["Authorization"] == nil)
        let parts = String(decoding: request.body, as: UTF8.self).split(separator: "&")
        let pairs = parts.map { part in
            let pair = part.split(separator: "=", maxSplits: 1).map { $0.replacing("+", with: " ").removingPercentEncoding ?? "" }
            return (pair[0], pair[1])
        }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    /// GitHub's endpoint: the request has a bearer token and an audience, and the answer is in `value`.
    func gitHub(_ audience: String) throws -> (LoopbackServer, Credential) {
        let server = try LoopbackServer { request in
            let isRight =
                request.hasPrefix("GET /token?api-version=2.0&audience=\(audience) HTTP/1.1\r\n")
                && request.contains("\r\nAuthorization: bearer request-token\r\n")
            let body = isRight ? #"{"count":1,"value":"platform.token"}"# : "{}"
            return .bytes("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        }
        let url = server.url.appending(queryItems: [
            URLQueryItem(name: "api-version", value: "2.0"), URLQueryItem(name: "audience", value: audience),
        ])
        let headers = ["Authorization": "bearer request-token"]
        return (server, try .url(url, headers: headers, member: "value", timeLimit: .seconds(300)))
    }

    // Google's STS has no clients and accepts no client_id: cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token.
    @Test(arguments: [true, false])
    func `a platform's token is exchanged at Google's STS`(isFromGitHub: Bool) async throws {
        let transport = ScriptedTransport { .token(#""expires_in":3600"#) }
        let client = try OAuthClient(
            id: "reports", authentication: .unidentified,
            tokenURL: #require(URL(string: "https://sts.googleapis.com/v1/token")), transport: transport)
        let audience = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k"
        let (server, identity) = try gitHub("google")
        defer { _ = server }
        let file = FileManager.default.temporaryDirectory.appending(path: "identity-\(UUID().uuidString)")
        try Data("platform.token".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        let loader = GrantLoader(client, isRepeatable: true) { _ in
            .tokenExchange(
                subject: try await isFromGitHub ? identity.read() : Credential.file(path: file.path).read(), type: .jwt,
                requestedType: .accessToken, audience: [audience], scope: "https://www.googleapis.com/auth/cloud-platform")
        }
        #expect(try await loader.loadToken(replacing: nil).value == "abc")
        #expect(
            try sent(to: transport) == [
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "audience": audience,
                "scope": "https://www.googleapis.com/auth/cloud-platform",
                "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "subject_token": "platform.token", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            ])
    }

    // learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow, "third case: … federated credential".
    @Test func `a platform's token is used as a client assertion at Azure`() async throws {
        let transport = ScriptedTransport { .token(#""expires_in":3599"#) }
        let (server, identity) = try gitHub("azure")
        defer { _ = server }
        let client = try OAuthClient(
            id: "app-id", authentication: .assertion { try await identity.read() },
            tokenURL: #require(URL(string: "https://login.microsoftonline.com/tenant/oauth2/v2.0/token")), transport: transport)
        let loader = try ClientCredentialsLoader(client, scope: "https://graph.microsoft.com/.default")
        #expect(try await loader.loadToken(replacing: nil).value == "abc")
        #expect(
            try sent(to: transport) == [
                "grant_type": "client_credentials", "client_id": "app-id", "client_assertion": "platform.token",
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                "scope": "https://graph.microsoft.com/.default",
            ])
    }

    // RFC 6749 §4.4: a credential that anyone could present doesn't authenticate a client.
    @Test func `a client without authentication can't use client credentials`() throws {
        let url = try #require(URL(string: "https://as.example/token"))
        for authentication in [ClientAuthentication.publicClient, .unidentified] {
            let client = try OAuthClient(id: "me", authentication: authentication, tokenURL: url)
            let error = try #require(throws: OAuthError.self) { try ClientCredentialsLoader(client) }
            #expect(error.code == .invalidConfiguration)
        }
    }
}
