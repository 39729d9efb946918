import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

// Three programs that needed their own transports before `OAuthClient` existed: with a dummy secret, a stripped header, and a
// form edited as text.

/// A key that signs, such as one in a key service.
private struct Signer: Sendable {
    func signature(for bytes: Data) async throws -> Data { Data("signature".utf8) }
}

// 1. private_key_jwt (RFC 7523 §2.2).
private func privateKeyJWT(_ url: URL, _ key: Signer, _ transport: any TokenTransport) throws -> some TokenLoader {
    let client = try OAuthClient(
        id: "jwt", authentication: .privateKeyJWT(algorithm: "RS256") { try await key.signature(for: $0) }, tokenURL: url,
        issuer: "https://as.example", transport: transport)
    return try ClientCredentialsLoader(client, scope: "api.read")
}

// 2. A code with PKCE (RFC 7636).
private func exchangeCode(
    _ code: String, _ verifier: String, _ url: URL, _ transport: any TokenTransport
) async throws -> TokenResponse {
    let client = try OAuthClient(id: "app", tokenURL: url, transport: transport)
    return try await client.token(for: .authorizationCode(code, verifier: verifier, redirectURI: "app:/cb"))
}

// 3. Token exchange (RFC 8693).
private func exchange(_ client: OAuthClient, resources: [String], subject: TokenService) -> some TokenLoader {
    GrantLoader(client, isRepeatable: true) { _ in
        .tokenExchange(
            subject: try await subject.retrieveToken().value, type: .accessToken, resource: resources, scope: "api.read")
    }
}

@Suite(.inRealTime)
struct ThreeProgramsTests {
    let url = URL(string: "https://as.example/token")

    @Test func `a signed assertion works without a dummy secret`() async throws {
        let transport = ScriptedTransport { .token() }
        let loader = try privateKeyJWT(#require(url), Signer(), transport)
        #expect(try await loader.loadToken(replacing: nil).value == "abc" && loader.isRepeatable)
        let request = try #require(transport.requests.last)
        #expect(request.headers["Authorization"] == nil)
        let form = String(decoding: request.body, as: UTF8.self)
        #expect(form.hasPrefix("grant_type=client_credentials&scope=api.read&client_id=jwt&client_assertion_type="))
    }

    @Test func `a refresh token beside a code's unusable access token is kept, and nothing is shown`() async throws {
        let transport = ScriptedTransport { TransportResponse(#"{"error":"c0d3-xyzzy","refresh_token":"r","id_token":"i"}"#) }
        let salvaged = try await #require(throws: SalvagedGrant.self) {
            try await exchangeCode("c0d3-xyzzy", "v3rifier", #require(url), transport)
        }
        #expect(salvaged.grant.refreshToken == "r" && !texts(salvaged).contains("xyzzy"))
    }

    @Test func `an exchange names several resources, and returns the type of the issued token`() async throws {
        let transport = ScriptedTransport { .token(#""issued_token_type":"urn:x""#) }
        let client = try OAuthClient(
            id: "a", authentication: .clientSecretPost("s"), tokenURL: #require(url), transport: transport)
        let subject = TokenService { _ in AccessToken("subject") }
        _ = try await exchange(client, resources: ["https://a", "https://b"], subject: subject).loadToken(replacing: nil)
        let form = try String(decoding: #require(transport.requests.last).body, as: UTF8.self)
        #expect(form.contains("resource=https%3A%2F%2Fa&resource=https%3A%2F%2Fb&scope=api.read&subject_token=subject&"))
        #expect(try await client.token(for: .jwtBearer("x")).members["issued_token_type"] == "urn:x")
    }
}
