import AccessTokens
import AccessTokensHTTP
import Foundation
import Testing

@testable import AccessTokensOAuth

@Suite("Members of an answer that a token keeps") struct KeptMembersTests {
    private static let url = URL(string: "https://server.example/token")

    private func token(
        _ body: String, keeping names: Set<String> = ["instance_url", "id_token", "realm_id"],
        replacing previous: AccessToken? = nil
    ) async throws -> AccessToken {
        let client = try OAuthClient(
            id: "app", tokenURL: try #require(Self.url), keeping: names, transport: FixedAnswer(body: Data(body.utf8)))
        let grant = previous?.refreshToken.map { Grant.refreshToken($0) } ?? .clientCredentials()
        return try await client.token(for: grant, replacing: previous).token
    }

    @Test func `a token keeps the texts and numbers that the program names, and nothing else`() async throws {
        let token = try await token(
            #"{"access_token":"a","instance_url":"https://eu.example","realm_id":12,"id_token":"","other":"x","list":["y"]}"#,
            keeping: ["instance_url", "id_token", "realm_id", "list"])
        #expect(token.members == ["instance_url": "https://eu.example", "realm_id": "12"])
        #expect(try await self.token(#"{"access_token":"a","id_token":"i"}"#, keeping: []).members.isEmpty)
    }

    @Test func `a refresh replaces the kept members that its answer has, and leaves the others`() async throws {
        let first = try await token(#"{"access_token":"a","refresh_token":"r","instance_url":"one","id_token":"i"}"#)
        let second = try await token(#"{"access_token":"b","instance_url":"two"}"#, replacing: first)
        #expect(second.members == ["instance_url": "two", "id_token": "i"])
        #expect(try await token(#"{"access_token":"c"}"#).members.isEmpty, "another grant has nothing of it")
    }

    @Test func `a refresh token that is saved from an unusable answer keeps the members`() async throws {
        let first = try await token(#"{"access_token":"a","refresh_token":"r","id_token":"i"}"#)
        let error = await #expect(throws: SalvagedGrant.self) {
            try await token(#"{"access_token":"two\nlines","refresh_token":"r2"}"#, replacing: first)
        }
        #expect(error?.grant.refreshToken == "r2" && error?.grant.members == ["id_token": "i"])
    }

    @Test func `no text of a token shows its kept members`() async throws {
        let token = try await token(#"{"access_token":"a","id_token":"SECRET-1"}"#)
        var dumped = ""
        dump(StoredToken(token, received: Date(timeIntervalSince1970: 0)), to: &dumped)
        for text in ["\(token)", String(reflecting: token), dumped, "\(Mirror(reflecting: token).children.map { $0 })"] {
            #expect(!text.contains("SECRET"))
        }
    }

    @Test func `a token's description shows only the members of the response that the program declares not secret`()
        async throws
    {
        let client = try OAuthClient(
            id: "app", tokenURL: try #require(Self.url), keeping: ["realm_id", "id_token", "note", "long"],
            showing: ["realm_id", "note", "long", "scope", "refresh_token"],
            transport: FixedAnswer(
                body: Data(
                    #"""
                    {"access_token":"SECRET-1","refresh_token":"SECRET-2","scope":"SECRET-3","id_token":"SECRET-4","realm_id":"eu\n1",
                    "note":"for SECRET-1","long":"\#(String(repeating: "x", count: 1_000))"}
                    """#.utf8)))
        let token = try await client.token(for: .clientCredentials()).token
        let copies = [token, token.with(grantOf: nil), token.with(scope: "a b")]
        for text in copies.flatMap({ ["\($0)", String(reflecting: $0)] }) {
            #expect(text.contains(#"realm_id: "eu\n1""#) && !text.contains("SECRET") && !text.contains("\n") && text.count < 300)
        }
        let stored = try StoredToken(
            serialized: StoredToken(token, received: Date(timeIntervalSince1970: 0)).serialized())
        #expect(stored.token == token && !"\(stored)".contains("realm_id"))
        #expect("\(AccessToken("a", members: ["x": "y"]))" == "\(AccessToken("a"))")
    }

    @Test func `stored bytes contain the kept members, and a token without any has the same bytes as before`() throws {
        let date = Date(timeIntervalSince1970: 1_000)
        let plain = try StoredToken(AccessToken("a"), received: date).serialized()
        #expect(!String(decoding: plain, as: UTF8.self).contains("members"))
        let kept = StoredToken(AccessToken("a", refreshToken: "r", members: ["id_token": "é\"\n"]), received: date)
        #expect(try StoredToken(serialized: kept.serialized()) == kept)
        #expect(kept.token != AccessToken("a", refreshToken: "r"))
    }

    /// Answers each request with the same body.
    private struct FixedAnswer: TokenTransport {
        let body: Data

        @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
            TransportResponse(status: 200, headers: ["Content-Type": "application/json"], body: body)
        }
    }
}
