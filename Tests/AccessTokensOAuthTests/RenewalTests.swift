import AccessTokens
import AccessTokensOAuth
import Foundation
import Testing

/// What becomes of the refresh token, whatever the server answers.
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
    func `A new refresh token replaces the old one, none keeps it`(members: String, kept: String) async throws {
        #expect(try await renew(members).refreshToken == kept)
    }

    // RFC 6749 §3.3 and §6: no scope in the answer means the one asked for, or else that of the grant.
    @Test(
        arguments: [
            (#""scope":"a""#, nil, "a"), ("", nil, "a b"), ("", "b", "b"), (#""scope":"a c""#, "a", "a c"),
            (#""scope":"""#, "a", "a"),
        ] as [(String, String?, String)])
    func `The scope that was granted is told`(members: String, wanted: String?, told: String) async throws {
        #expect(try await renew(members, scope: wanted).scope == told)
    }

    @Test func `A complete answer becomes a token`() async throws {
        let token = try await renew(#""expires_in":100,"refresh_in":50,"scope":"a","refresh_token":"r2""#)
        #expect(
            token
                == AccessToken("abc", lifetime: .seconds(100), refreshIn: .seconds(50), scope: "a", refreshToken: "r2"))
    }

    // RFC 6749 §5.1 and RFC 9700 §4.14.2: a lifetime that is none must not cost the new refresh token.
    @Test(arguments: [
        ("7", Duration.seconds(7)), (#""7""#, .seconds(7)), ("-1", .zero), (#""-1""#, .zero), ("1e300", .seconds(315_360_000)),
        (#""NaN""#, .seconds(300)), ("NaN", .seconds(300)), ("Infinity", .seconds(300)), ("-Infinity", .seconds(300)),
        (#""soon""#, .seconds(300)), ("true", .seconds(300)), ("{}", .seconds(300)), ("[NaN]", .seconds(300)),
        ("null", .seconds(300)), ("1e999", .seconds(300)),
    ])
    func `A lifetime that is none loses no refresh token`(lifetime: String, counted: Duration) async throws {
        let token = try await renew(#""x":"NaN\"\\","refresh_token":"r\"NaN","expires_in":\#(lifetime)"#)
        #expect(token.refreshToken == #"r"NaN"#)
        #expect(token.value == "abc")
        #expect(token.lifetime == counted)
    }

    // RFC 6749 §5.1, §7.1: no such answer may be used; its refresh token must be, for the old one is spent.
    @Test(arguments: [
        #"{"refresh_token":"r2"}"#, #"{"access_token":"abc","refresh_token":"r2"}"#,
        #"{"access_token":"abc","token_type":"mac","refresh_token":"r2"}"#,
        #"{"access_token":7,"token_type":"Bearer","refresh_token":"r2"}"#,
        #"{"access_token":"a","access_token":"b","token_type":"Bearer","refresh_token":"r2"}"#,
        #"{"access_token":"a\n","token_type":"Bearer","refresh_token":"r2"}"#,
        #"{"access_token":"abc","token_type":"Bearer","scope":["a"],"refresh_token":"r2","x":NaN}"#,
    ])
    func `An answer without a usable token keeps its refresh token in an expired one`(body: String) async throws {
        let token = try await RefreshTokenLoader(answer: TokenResponse(body)).loadToken(replacing: previous)
        #expect(token == AccessToken("", lifetime: .zero, scope: "a b", refreshToken: "r2"))
    }

    @Test(arguments: [
        ("", OAuthError.Code.unreadableResponse), ("<html>", .unreadableResponse), ("{}", .unreadableResponse),
        (#"{"access_token":"abc","token_type":"mac"}"#, .unsupportedTokenType),
        (#"{"access_token":"abc","token_type":"mac","refresh_token":"r1"}"#, .unsupportedTokenType),
        (#"{"access_token":"abc","refresh_token":"r2","refresh_token":"r3"}"#, .unreadableResponse),
        (#"{"access_token":"abc","token_type":"Bearer","refresh_token":7}"#, .unreadableResponse),
        (#"{"access_token":"abc","token_type":"Bearer","refresh_token":"r2"#, .unreadableResponse),
        (#"{"error":"server_error","refresh_token":"r2"}"#, .refused),
    ])
    func `An answer that grants nothing is an error that keeps the old one`(body: String, code: OAuthError.Code) async throws {
        let failure = try await RefreshTokenLoader(answer: TokenResponse(body)).failure(replacing: previous)
        #expect(failure.code == code)
        #expect(failure.remedy != .signIn)
    }

    // Glewlwyd 2.7.5 answers a used refresh token with an empty 400: no storm, and no sign-out by a guess.
    @Test(arguments: [400, 401, 403], ["", "<html>", "{}", #"{"error":7}"#])
    func `A refusal without a reason is asked about again after the longest pause`(status: Int, body: String) async throws {
        let failure = try await RefreshTokenLoader(answer: TokenResponse(status, body)).failure(replacing: previous)
        #expect(failure.code == .refused)
        #expect(failure.remedy == .signInOrRegistration)
        #expect("\(failure)".contains("sign in again") && "\(failure)".contains("secret"))
    }

    // RFC 6749 §5.2 and museum 29: `invalid_grant` alone signs out, and not from behind a broken gateway.
    @Test(arguments: [
        (400, "invalid_grant", TokenServiceError.Remedy.signIn), (200, "invalid_grant", .signIn),
        (400, #" invalid_grant\n"#, .signIn), (503, "invalid_grant", .retry),
        (400, "invalid_client", .clientRegistration), (400, "invalid_scope", .clientRegistration), (400, "odd", .retry),
        (403, "", .signInOrRegistration), (404, "", .retry), (302, "invalid_grant", .retry),
    ])
    func `Only a refused grant asks for a sign-in`(status: Int, error: String, remedy: TokenServiceError.Remedy) async throws {
        let answer = TokenResponse(status, #"{"error":"\#(error)"}"#)
        #expect(try await RefreshTokenLoader(answer: answer).failure(replacing: previous).remedy == remedy)
    }
}
