import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import Testing

struct IntrospectionTests {
    func introspect(_ answer: TransportResponse, hint: String? = nil) async throws -> (ResponseMembers?, TransportRequest?) {
        let transport = ScriptedTransport { answer }
        let client = try OAuthClient(
            id: "s6BhdRkqt3", authentication: .clientSecretBasic("gX1fBat3bV"),
            tokenURL: #require(URL(string: "https://server.example.com/token")), transport: transport)
        let url = try #require(URL(string: "https://server.example.com/introspect"))
        let members = try await client.introspect("mF_9.B5f-4.1JqM", at: url, hint: hint)
        return (members, transport.requests.last)
    }

    // RFC 7662 §2.1 and §2.2: its examples.
    @Test func `an active token's introspection returns its members`() async throws {
        struct Answer: Decodable { let exp: Int, sub: String }
        let answer = TransportResponse(
            #"""
            {
              "active": true,
              "client_id": "l238j323ds-23ij4",
              "username": "jdoe",
              "scope": "read write dolphin",
              "sub": "Z5O3upPC88QrAjx00dis",
              "aud": "https://protected.example.net/resource",
              "iss": "https://server.example.com/",
              "exp": 1419356238,
              "iat": 1419350238,
              "extension_field": "twenty-seven"
            }
            """#)
        let (members, request) = try await introspect(answer, hint: "access_token")
        #expect(members?["scope"] == "read write dolphin" && members?["username"] == "jdoe")
        #expect(try members?.decoded(as: Answer.self).exp == 1_419_356_238)
        let form = String(decoding: try #require(request).body, as: UTF8.self)
        #expect(form == "token=mF_9.B5f-4.1JqM&token_type_hint=access_token")
        #expect(!texts(members as Any).contains("jdoe"))
    }

    @Test func `an inactive token's introspection returns no members`() async throws {
        #expect(try await introspect(TransportResponse(#"{"active":false}"#)).0 == nil)
    }

    @Test(arguments: ["{}", #"{"active":"true"}"#, #"{"active":1}"#, #"{"active":null}"#, "", "[true]"])
    func `an answer without a valid active member is an error`(body: String) async throws {
        let failure = try await #require(throws: OAuthError.self) { try await introspect(TransportResponse(body)) }
        #expect(failure.code == .unreadableResponse)
    }

    @Test func `18: a refusal doesn't show the token, nor the secret`() async throws {
        let answer = TransportResponse(401, #"{"error":"invalid_client","error_description":"mF_9.B5f-4.1JqM gX1fBat3bV"}"#)
        let failure = try await #require(throws: OAuthError.self) { try await introspect(answer) }
        #expect(failure.remedy == .clientRegistration && failure.serverDescription == "[hidden] [hidden]")
    }
}
