import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

@Suite(.inRealTime)
struct RevocationTests {
    struct Revocation {
        let client: OAuthClient
        let url: URL

        func revoke(_ token: AccessToken) async throws { try await client.revoke(token, at: url) }
    }

    func revocation(_ answer: TransportResponse = TransportResponse(status: 200)) throws -> (Revocation, ScriptedTransport) {
        let transport = ScriptedTransport { answer }
        let client = try OAuthClient(
            id: "me", authentication: .clientSecretBasic("s3cr3t"), tokenURL: #require(URL(string: "https://as.example/token")),
            transport: transport, wallClock: { Date(timeIntervalSince1970: 784_111_747) })
        return (Revocation(client: client, url: try #require(URL(string: "https://as.example/revoke?policy=1"))), transport)
    }

    // RFC 7009 §2.1: with the refresh token the server ends the grant's access tokens too.
    @Test(arguments: [
        (AccessToken("a+", refreshToken: "r/"), "token=r%2F&token_type_hint=refresh_token"),
        (AccessToken("a+"), "token=a%2B&token_type_hint=access_token"),
        (AccessToken("a+", refreshToken: ""), "token=a%2B&token_type_hint=access_token"),
    ])
    func `the refresh token is revoked, or the access token if there is none`(token: AccessToken, form: String) async throws {
        let (revocation, transport) = try revocation()
        try await revocation.revoke(token)
        let request = try #require(transport.requests.last)
        #expect(String(decoding: request.body, as: UTF8.self) == form)
        #expect(request.url.absoluteString == "https://as.example/revoke?policy=1")
        #expect(request.headers["Authorization"] == "Basic \(Data("me:s3cr3t".utf8).base64EncodedString())")
        #expect(transport.requests.count == 1)
    }

    // RFC 7009 §5: a public client names itself.
    @Test func `a public client sends its id and no secret`() async throws {
        let transport = ScriptedTransport { TransportResponse(status: 200) }
        let url = try #require(URL(string: "https://as.example/revoke"))
        try await OAuthClient(id: "app", tokenURL: url, transport: transport).revoke(AccessToken("a"), at: url)
        let request = try #require(transport.requests.last)
        #expect(String(decoding: request.body, as: UTF8.self) == "token=a&token_type_hint=access_token&client_id=app")
        #expect(request.headers["Authorization"] == nil)
    }

    // RFC 6749 §3.2: nothing empty is sent.
    @Test func `an empty token needs no request`() async throws {
        let (revocation, transport) = try revocation()
        try await revocation.revoke(AccessToken("", lifetime: .zero))
        #expect(transport.requests.isEmpty)
    }

    // RFC 7009 §2.2: 200 even for tokens that the server does not know; the body has no meaning.
    @Test(arguments: [200, 204], ["", "{}", "<html>", #"{"error":"invalid_token"}"#])
    func `a success status counts as success, whatever the body says`(status: Int, body: String) async throws {
        try await revocation(TransportResponse(status, body)).0.revoke(AccessToken("a"))
    }

    // RFC 7009 §2.2.1.
    @Test(arguments: [
        (400, "unsupported_token_type", TokenServiceError.Remedy.clientRegistration),
        (401, "invalid_client", .clientRegistration),
        (400, "invalid_request", .clientRegistration), (500, "", .retry), (404, "", .retry), (403, "", .clientRegistration),
    ])
    func `a refusal says how to recover from it`(status: Int, error: String, remedy: TokenServiceError.Remedy) async throws {
        let answer = TransportResponse(status, #"{"error":"\#(error)","error_description":"no r-secret, s3cr3t"}"#)
        let (revocation, transport) = try revocation(answer)
        let failure = try await #require(throws: OAuthError.self) {
            try await revocation.revoke(AccessToken("a", refreshToken: "r-secret"))
        }
        #expect(failure.code == .refused && failure.status == status && failure.remedy == remedy)
        #expect(failure.error == (error.isEmpty ? nil : error))
        #expect(failure.serverDescription == "no [hidden], [hidden]")
        #expect(transport.requests.count == 1)
    }

    // RFC 7009 §2.2.1: after a 503 the token still exists, and the server may say when to try again.
    @Test(arguments: [("30", Duration.seconds(30)), ("Sun, 06 Nov 1994 08:49:37 GMT", .seconds(30)), ("", nil)])
    func `a busy server says when to try again`(value: String, wait: Duration?) async throws {
        let (revocation, _) = try revocation(TransportResponse(503, "", headers: ["Retry-After": value]))
        let failure = try await #require(throws: OAuthError.self) { try await revocation.revoke(AccessToken("a")) }
        #expect(failure.remedy == .retry && failure.retryAfter == wait)
    }

    // RFC 9700 §4.12.
    @Test func `a redirect is an error`() async throws {
        let (revocation, _) = try revocation(TransportResponse(307, "", headers: ["Location": "https://other.example"]))
        #expect(try await #require(throws: OAuthError.self) { try await revocation.revoke(AccessToken("a")) }.code == .redirected)
    }

    // RFC 7009 §2: TLS, as for tokens.
    @Test func `a URL that endangers the token is refused`() async throws {
        let (revocation, transport) = try revocation(), url = try #require(URL(string: "http://as.example/revoke"))
        let failure = try await #require(throws: OAuthError.self) {
            try await revocation.client.revoke(AccessToken("a"), at: url)
        }
        #expect(transport.requests.isEmpty)
        #expect(failure.code == .invalidConfiguration && "\(failure)".contains("revocation URL"))
    }

    @Test func `sign-out revokes the grant that it dropped`() async throws {
        let (revocation, transport) = try revocation()
        let tokens = TokenService(
            environment: .init(clock: ManualClock()), loader: try RefreshTokenLoader(answer: .token(#""refresh_token":"r2""#)))
        await tokens.replace(with: AccessToken("a", lifetime: .zero, refreshToken: "r1"))
        _ = try await tokens.retrieveToken()
        let dropped = try #require(await tokens.reset().discarded.first)
        try await revocation.revoke(dropped)
        #expect(transport.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["token=r2&token_type_hint=refresh_token"])
        await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
    }
}
