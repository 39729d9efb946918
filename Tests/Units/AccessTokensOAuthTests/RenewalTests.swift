import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

/// Whether the loader keeps, replaces or hands over the refresh token, for every kind of answer.
@Suite(.inRealTime)
struct RenewalTests {
    let previous = AccessToken("old", scope: "a b", refreshToken: "r1")

    func renew(_ members: String, scope: String? = nil) async throws -> AccessToken {
        try await RefreshTokenLoader(answer: .token(members), scope: scope).loadToken(replacing: previous)
    }

    // RFC 6749 §6.
    @Test(arguments: [
        (#""refresh_token":"r2""#, "r2"), (#""refresh_token":"r1""#, "r1"), ("", "r1"), (#""refresh_token":null"#, "r1"),
        (#""refresh_token":"""#, "r1"),
    ])
    func `a new refresh token replaces the old one, which is kept if there is none`(members: String, kept: String) async throws {
        #expect(try await renew(members).refreshToken == kept)
    }

    // RFC 6749 §3.3 and §6: no scope in the answer means the one asked for, or else that of the grant.
    @Test(
        arguments: [
            (#""scope":"a""#, nil, "a"), ("", nil, "a b"), ("", "b", "b"), (#""scope":"a c""#, "a", "a c"),
            (#""scope":"""#, "a", "a"),
        ] as [(String, String?, String)])
    func `a token has the scope that was granted`(members: String, wanted: String?, told: String) async throws {
        #expect(try await renew(members, scope: wanted).scope == told)
    }

    @Test func `a complete answer becomes a token`() async throws {
        let token = try await renew(#""expires_in":100,"refresh_in":50,"scope":"a","refresh_token":"r2""#)
        #expect(
            token
                == AccessToken("abc", lifetime: .seconds(100), refreshIn: .seconds(50), scope: "a", refreshToken: "r2"))
    }

    // RFC 6749 §5.1 and RFC 9700 §4.14.2: an invalid lifetime must not lose the new refresh token.
    @Test(arguments: [
        ("7", Duration.seconds(7)), (#""7""#, .seconds(7)), ("0", .seconds(300)), ("1e300", .seconds(315_360_000)),
        (#""NaN""#, .seconds(300)), ("NaN", .seconds(300)), ("Infinity", .seconds(300)), ("-Infinity", .seconds(300)),
        (#""soon""#, .seconds(300)), ("true", .seconds(300)), ("{}", .seconds(300)), ("[NaN]", .seconds(300)),
        ("null", .seconds(300)), ("1e999", .seconds(300)),
    ])
    func `an invalid lifetime doesn't lose the refresh token`(lifetime: String, counted: Duration) async throws {
        let token = try await renew(#""x":"NaN\"\\","refresh_token":"r\"NaN","expires_in":\#(lifetime)"#)
        #expect(token.refreshToken == #"r"NaN"#)
        #expect(token.value == "abc")
        #expect(token.lifetime == counted)
    }

    // RFC 6749 §6 and App. A.17: it should be printable ASCII, but a form can carry any text, and the old token is spent.
    @Test(arguments: ["näxt", "r\n2", "\u{1F511}", "e\u{301}", " ", "\u{0}"])
    func `a refresh token of any text is kept, and sent back unchanged`(text: String) async throws {
        let json = try String(decoding: JSONEncoder().encode(text), as: UTF8.self)
        let transport = ScriptedTransport { .token(#""refresh_token":\#(json)"#) }
        let loader = try RefreshTokenLoader(answer: .token(), transport: transport)
        let token = try await loader.loadToken(replacing: previous)
        #expect(token.refreshToken.map { Array($0.utf8) } == Array(text.utf8))
        _ = try await loader.loadToken(replacing: token)
        let form = try String(decoding: #require(transport.requests.last).body, as: UTF8.self)
        let sent = form.split(separator: "refresh_token=").last?.prefix { $0 != "&" }.replacingOccurrences(of: "+", with: " ")
        #expect(sent?.removingPercentEncoding.map { Array($0.utf8) } == Array(text.utf8))
    }

    /// Members that a server may send with a new refresh token, and the resulting error.
    static let salvageable: [(body: String, code: OAuthError.Code, reason: String)] = [
        (#"{"refresh_token":"r2"}"#, .unreadableResponse, "access_token is missing"),
        (#"{"access_token":"abc","token_type":7,"refresh_token":"r2"}"#, .unreadableResponse, "token_type has the wrong type"),
        (#"{"access_token":"abc","token_type":"mac","refresh_token":"r2"}"#, .unsupportedTokenType, "type mac"),
        (
            #"{"access_token":7,"token_type":"Bearer","refresh_token":"r2"}"#, .unreadableResponse,
            "access_token has the wrong type"
        ),
        (
            #"{"access_token":"a","access_token":"b","token_type":"Bearer","refresh_token":"r2"}"#, .unreadableResponse,
            "access_token is repeated"
        ),
        (
            #"{"access_token":"a\n","token_type":"Bearer","refresh_token":"r2"}"#, .unreadableResponse,
            "access_token has an invalid value"
        ),
        (
            #"{"access_token":"abc","token_type":"Bearer","scope":{},"refresh_token":"r2","x":NaN}"#, .unreadableResponse,
            "scope has the wrong type"
        ),
        // Several, one of which may be the old one.
        (
            #"{"access_token":"abc","token_type":"Bearer","refresh_token":"r3","refresh_token":"r2"}"#, .unreadableResponse,
            "refresh_token is repeated"
        ),
        (
            #"{"access_token":"abc","token_type":"Bearer","refresh_token":"r2","refresh_token":"r1"}"#, .unreadableResponse,
            "refresh_token is repeated"
        ),
        (
            #"{"access_token":"abc","token_type":"Bearer","refresh_token":"r2","refresh\u005ftoken":7}"#, .unreadableResponse,
            "refresh_token"
        ),
        // In an answer with an error.
        (#"{"error":"server_error","refresh_token":"r2"}"#, .refused, "server_error"),
        (#"{"refresh_token":"r2","error":"invalid_grant","x":NaN}"#, .refused, "invalid_grant"),
        (
            #"{"access_token":"abc","token_type":"Bearer","error":7,"refresh_token":"r2"}"#, .unreadableResponse,
            "error has the wrong type"
        ),
        // Not JSON, or not all of it.
        (#"{"access_token":"abc","token_type":"Bearer","refresh_token":"r2","sco"#, .unreadableResponse, "not JSON"),
        (#"{"refresh_token" : "r2","x":'y'}"#, .unreadableResponse, "not JSON"),
        (
            "\u{FEFF}\n{\"x\":{\"refresh_token\":\"r3\"},\"refresh_token\":\"r2\",}", .unreadableResponse,
            "access_token is missing"
        ),
        (#"{"refresh_token":"r2"}}"#, .unreadableResponse, "not JSON"),
    ]

    // RFC 6749 §5.1, §7.1: such an answer must not be used, but its refresh token must be, since the old one is spent.
    @Test(arguments: salvageable)
    func `an unusable answer's refresh token is kept, and the error says what is wrong`(
        body: String, code: OAuthError.Code, reason: String
    ) async throws {
        let loader = try RefreshTokenLoader(answer: TransportResponse(body))
        let salvaged = try await #require(throws: SalvagedGrant.self) { try await loader.loadToken(replacing: previous) }
        #expect(salvaged.grant == AccessToken("", lifetime: .zero, scope: "a b", refreshToken: "r2"))
        let failure = try #require(salvaged.reason as? OAuthError)
        #expect(failure.code == code)
        #expect("\(failure)".contains(reason))
        #expect(!texts(salvaged).contains("r2"))
    }

    @Test func `a refresh token in bytes that are not UTF-8 is kept`() async throws {
        var body = Data(#"{"refresh_token":"r2","scope":""#.utf8)
        body += [0xE4, 0, UInt8(ascii: "\""), UInt8(ascii: "}")]
        let loader = try RefreshTokenLoader(answer: TransportResponse(status: 200, body: body))
        let salvaged = try await #require(throws: SalvagedGrant.self) { try await loader.loadToken(replacing: previous) }
        #expect(salvaged.grant.refreshToken == "r2")
        #expect("\(salvaged)".contains("UTF-8"))
    }

    @Test(arguments: [
        (200, "", OAuthError.Code.unreadableResponse), (200, "<html>", .unreadableResponse), (200, "{}", .unreadableResponse),
        (200, #"{"access_token":"abc","token_type":"mac"}"#, .unsupportedTokenType),
        (200, #"{"access_token":"abc","token_type":"mac","refresh_token":"r1"}"#, .unsupportedTokenType),
        (200, #"{"access_token":"abc","token_type":"Bearer","refresh_token":7}"#, .unreadableResponse),
        (200, #"{"access_token":"abc","token_type":"Bearer","refresh_token":"r2"#, .unreadableResponse),
        (200, #"{"access_token":"abc","token_type":"Bearer","refresh_token":"\ud800"}"#, .unreadableResponse),
        (200, #"{"refresh_token":"","error":"e"}"#, .refused), (200, #"["refresh_token","r2"]"#, .unreadableResponse),
        (200, #"<script>{"refresh_token":"r2"}</script>"#, .unreadableResponse),
        (200, #"{"x":{"refresh_token":"r2"},"y":"refresh_token","z":["refresh_token","r2"]}"#, .unreadableResponse),
        // Nothing is issued with a refusal.
        (400, #"{"error":"e","refresh_token":"r2"}"#, .refused), (503, #"{"error":"e","refresh_token":"r2"}"#, .refused),
        (302, #"{"refresh_token":"r2"}"#, .redirected),
    ])
    func `an answer that grants nothing is an error, and the old refresh token is kept`(
        status: Int, body: String, code: OAuthError.Code
    ) async throws {
        let failure = try await RefreshTokenLoader(answer: TransportResponse(status, body)).failure(replacing: previous)
        #expect(failure.code == code)
        #expect(failure.remedy != .signIn)
    }

    // Glewlwyd 2.7.5 answers a used refresh token with an empty 400: that must cause neither a storm of requests nor a sign-out
    // on a guess.
    @Test(arguments: [400, 401, 403], ["", "<html>", "{}", #"{"error":7}"#])
    func `a refusal without a reason counts as unclear`(status: Int, body: String) async throws {
        guard status != 403 || body.hasPrefix("{") else { return }
        let failure = try await RefreshTokenLoader(answer: TransportResponse(status, body)).failure(replacing: previous)
        #expect(failure.code == .refused)
        #expect(failure.remedy == .signInOrRegistration)
        #expect("\(failure)".contains("sign in again") && "\(failure)".contains("secret"))
    }

    // RFC 6749 §5.2 and museum 29: only an error about the grant signs out at once, unless it comes with a gateway's status. Some
    // servers call a spent refresh token an invalid request.
    @Test(arguments: [
        (400, "invalid_grant", TokenServiceError.Remedy.signIn), (200, "invalid_grant", .signIn),
        (400, "interaction_required", .signIn), (400, "login_required", .signIn), (403, "consent_required", .signIn),
        (400, #" invalid_grant\n"#, .signIn), (503, "invalid_grant", .retry),
        (400, "invalid_client", .clientRegistration), (400, "invalid_scope", .clientRegistration),
        (400, "odd", .signInOrRegistration), (403, "", .signInOrRegistration), (400, "invalid_request", .signInOrRegistration),
        (401, "invalid_request", .signInOrRegistration),
        (500, "invalid_request", .retry), (404, "", .retry), (302, "invalid_grant", .retry),
    ])
    func `only a refused grant asks for a sign-in`(status: Int, error: String, remedy: TokenServiceError.Remedy) async throws {
        let answer = TransportResponse(status, #"{"error":"\#(error)"}"#)
        #expect(try await RefreshTokenLoader(answer: answer).failure(replacing: previous).remedy == remedy)
    }
}
