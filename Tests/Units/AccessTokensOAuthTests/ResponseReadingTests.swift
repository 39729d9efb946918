import AccessTokens
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

/// A program that reads its server's answers itself.
@Suite(.inRealTime)
struct ResponseReadingTests {
    static let secret = "nEw-t0ken_4Vx9"

    struct Wrapped: Decodable {
        struct Token: Decodable { let token: String, minutes: Int?, next: String? }
        let data: Token?, fault: String?
    }

    static let wrapped: @Sendable (ResponseMembers, Int) -> ResponseReading = { members, _ in
        guard let answer = try? members.decoded(as: Wrapped.self) else { return .asUsual }
        if let fault = answer.fault { return .refused(fault, explanation: members["why"]) }
        guard let token = answer.data else { return .asUsual }
        return .token(
            AccessToken(token.token, lifetime: token.minutes.map { .seconds($0 * 60) }, refreshToken: token.next))
    }

    func client(
        _ body: String, status: Int = 200, headers: [String: String] = [:], parameters: Form = [:],
        transport: ScriptedTransport? = nil, reading: @escaping @Sendable (ResponseMembers, Int) -> ResponseReading = wrapped
    ) throws -> OAuthClient {
        try OAuthClient(
            id: "me", tokenURL: #require(URL(string: "https://as.example/token?v=1")), additionalHeaders: headers,
            additionalParameters: parameters, transport: transport ?? ScriptedTransport { TransportResponse(status, body) },
            reading: reading)
    }

    let previous = AccessToken("old", scope: "a b", refreshToken: "r1")

    // What the program doesn't say is as with any other answer.
    @Test(arguments: [
        (
            #"{"data":{"token":"abc","minutes":2,"next":"r2"}}"#,
            AccessToken("abc", lifetime: .seconds(120), scope: "a b", refreshToken: "r2")
        ),
        (#"{"data":{"token":"abc"}}"#, AccessToken("abc", lifetime: .seconds(300), scope: "a b", refreshToken: "r1")),
        (#"{"data":{"token":"abc","minutes":0}}"#, AccessToken("abc", lifetime: .seconds(300), scope: "a b", refreshToken: "r1")),
        (#"{"access_token":"abc","scope":"c"}"#, AccessToken("abc", lifetime: .seconds(300), scope: "c", refreshToken: "r1")),
    ])
    func `a program's closure reads members of its own, and the rest is read as usual`(body: String, token: AccessToken)
        async throws
    {
        #expect(try await client(body).token(for: .refreshToken("r1"), replacing: previous).token == token)
    }

    @Test(arguments: [200, 400, 401])
    func `a refusal that the program's closure reads has the remedy of that refusal`(status: Int) async throws {
        let client = try client(
            #"{"fault":"invalid_grant","why":"It is \#(Self.secret).","token":"\#(Self.secret)"}"#, status: status)
        let error = try await #require(throws: OAuthError.self) { try await client.token(for: .refreshToken("r1")) }
        #expect(error.code == .refused && error.error == "invalid_grant" && error.remedy == .signIn && error.status == status)
        #expect(error.serverDescription == "It is [hidden].")
    }

    @Test(arguments: [
        (#"{"data":{"token":"a\nb","next":"\#(secret)"}}"#, "access_token has an invalid value"),
        (#"{"data":{"token":"","next":"\#(secret)"}}"#, "access_token has an invalid value"),
        (#"{"x":1,"refresh_token":"\#(secret)"}"#, "access_token is missing"),
        (#"{"fault":"odd","refresh_token":"\#(secret)"}"#, "odd"),
    ])
    func `a refresh token in an answer of no use is kept, wherever the program reads it`(
        body: String, reason: String
    ) async throws {
        let salvaged = try await #require(throws: SalvagedGrant.self) {
            try await client(body).token(for: .refreshToken("r1"), replacing: previous)
        }
        #expect(salvaged.grant.refreshToken == Self.secret && "\(salvaged.reason)".contains(reason), "\(salvaged)")
        #expect(!texts(salvaged.reason).contains("4Vx9"))
    }

    @Test(arguments: ["<html>", "", #"{"a":1,"a":"#])
    func `a body without members isn't given to the program`(body: String) async throws {
        let client = try client(body, reading: { _, _ in .token(AccessToken("made-up")) })
        let error = try await #require(throws: OAuthError.self) { try await client.token(for: .refreshToken("r1")) }
        #expect(error.code == .unreadableResponse)
        let redirecting = try self.client("{}", status: 302, reading: { _, _ in .token(AccessToken("made-up")) })
        await #expect(throws: OAuthError.self) { try await redirecting.token(for: .refreshToken("r1")) }
    }

    @Test(arguments: [("mac", true), ("DPoP", true), ("bearer", false)])
    func `a token that the program's closure reads must have an accepted type`(type: String, isRefused: Bool) async throws {
        let client = try client("{}", reading: { _, _ in .token(AccessToken("abc", tokenType: type)) })
        let token = try? await client.token(for: .clientCredentials()).token
        #expect(token?.tokenType == (isRefused ? nil : "Bearer"))
    }

    @Test func `18: no text of an answer reading shows what was read`() {
        let token = ResponseReading.token(AccessToken(Self.secret, refreshToken: Self.secret))
        #expect(!texts(token).contains("4Vx9"))
        #expect(!texts(ResponseReading.refused(Self.secret, explanation: Self.secret)).contains("4Vx9"))
    }

    @Test func `headers and parameters of the program are part of each token request`() async throws {
        let transport = ScriptedTransport { .token() }
        let client = try client(
            "", headers: ["User-Agent": "app/1", "accept": "application/vnd.x+json"], parameters: ["tenant": "t 1"],
            transport: transport)
        _ = try await client.token(for: .clientCredentials())
        _ = try await client.members(for: ["a": "b"], at: #require(URL(string: "https://as.example/other")))
        let (first, second) = try (#require(transport.requests.first), #require(transport.requests.last))
        #expect(first.headers["User-Agent"] == "app/1" && second.headers["User-Agent"] == "app/1")
        #expect(first.headers.keys.filter { $0.lowercased() == "accept" } == ["accept"])
        #expect(String(decoding: first.body, as: UTF8.self) == "grant_type=client_credentials&tenant=t+1&client_id=me")
        #expect(!String(decoding: second.body, as: UTF8.self).contains("tenant"))
    }

    @Test(arguments: [
        ["Authorization": "x"], ["content-type": "x"], ["DPoP": "x"], ["a b": "x"], ["": "x"], ["a": "x\r\nb: c"], ["a": "ü"],
        ["X-A": "1", "x-a": "2"], ["Host": "x"],
    ])
    func `a header that belongs to the client or breaks HTTP is refused`(headers: [String: String]) throws {
        let error = try #require(throws: OAuthError.self) { try client("", headers: headers) }
        #expect(error.code == .invalidConfiguration && "\(error)".contains("additional header"))
    }

    @Test(arguments: ["client_secret", "grant_type", "scope", "code", "v", ""])
    func `a parameter that belongs to a grant or to the endpoint is refused`(name: String) throws {
        let error = try #require(throws: OAuthError.self) { try client("", parameters: [name: "x"]) }
        #expect(error.code == .invalidConfiguration)
    }

    @Test func `18: an echoed header of the program is hidden`() async throws {
        let client = try client(
            #"{"error":"e","error_description":"got k-\#(Self.secret)"}"#, status: 400, headers: ["X-Key": "k-\(Self.secret)"])
        let error = try await #require(throws: OAuthError.self) { try await client.token(for: .clientCredentials()) }
        #expect(error.serverDescription == "got [hidden]" && !texts(client).contains("4Vx9"))
    }
}
