import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

@Suite(.inRealTime)
struct TokenResponseTests {
    func load(_ answer: TransportResponse, lifetimeWhenMissing: Duration? = .seconds(300)) async throws -> AccessToken {
        try await ClientCredentialsLoader(answer: answer, lifetimeWhenMissing: lifetimeWhenMissing).loadToken(replacing: nil)
    }

    // RFC 6749 §5.1: every known member is read, and unknown ones are ignored.
    @Test func `a complete answer becomes a token`() async throws {
        let token = try await load(
            .token(
                #""expires_in":3600,"refresh_in":1800,"refresh_token":"r","scope":"a b","id_token":{"x":[1,"access_token"]}"#))
        #expect(
            token
                == AccessToken(
                    "abc", lifetime: .seconds(3600), refreshIn: .seconds(1800), scope: "a b", refreshToken: "r"))
    }

    // RFC 6749 §3.3: no scope means the one asked for. Members that are null or empty count as absent.
    @Test(arguments: ["", #""scope":null,"refresh_token":null,"error":null"#, #""scope":"","refresh_token":"","error":"""#])
    func `members may be missing, null or empty`(members: String) async throws {
        #expect(try await load(.token(members)) == AccessToken("abc", lifetime: .seconds(300)))
        #expect(try await load(.token(members), lifetimeWhenMissing: nil) == AccessToken("abc"))
    }

    // RFC 6749 §5.1 and §7.1: compared without case; kept as RFC 6750 §2.1 writes it.
    @Test(arguments: ["Bearer", "bearer", "BEARER"])
    func `a Bearer token is recognised in any case`(type: String) async throws {
        let token = try await load(TransportResponse(#"{"access_token":"abc","token_type":"\#(type)"}"#))
        #expect(token.tokenType == "Bearer")
    }

    @Test(arguments: ["DPoP", "mac", "N_A"])
    func `a token of another type must not be used`(type: String) async throws {
        let answer = TransportResponse(#"{"access_token":"abc","token_type":"\#(type)"}"#)
        let failure = try await ClientCredentialsLoader(answer: answer).failure()
        #expect(failure.code == .unsupportedTokenType)
        #expect(failure.remedy == .clientRegistration)
        #expect("\(failure)".contains(type))
        #expect("\(failure)".contains("acceptedTokenTypes") == (type == "N_A"))
    }

    // RFC 6749 §5.1: seconds; some servers send a string. Ten years is the longest supported lifetime.
    @Test(arguments: [
        ("0.001", Duration.milliseconds(1)), ("5", .seconds(5)), (#""3600""#, .seconds(3600)), ("1.5", .milliseconds(1500)),
        (#""1e2""#, .seconds(100)), ("1e300", .seconds(315_360_000)), ("9223372036854775808", .seconds(315_360_000)),
    ])
    func `a lifetime is a number or a string of seconds`(value: String, lifetime: Duration) async throws {
        #expect(try await load(.token(#""expires_in":\#(value)"#)).lifetime == lifetime)
    }

    @Test(arguments: [
        "0", "-0", #""0""#, "-1", #""-1""#, #""NaN""#, #""inf""#, #""0x10""#, #""soon""#, #""""#, #"" 5""#, #""1e999""#, "true",
        "[5]", "{}",
        "1e999", "NaN",
    ])
    func `an invalid lifetime counts as missing`(value: String) async throws {
        #expect(try await load(.token(#""expires_in":\#(value)"#)).lifetime == .seconds(300))
        #expect(try await load(.token(#""expires_in":\#(value)"#), lifetimeWhenMissing: nil).lifetime == nil)
    }

    // Twitch writes a list, not the text of RFC 6749 §3.3.
    @Test(arguments: [
        (#"["a:read"]"#, "a:read"), (#"["a","b c"]"#, "a b c"), ("[]", nil), (#"[""]"#, nil),
        (#"[ "a" , "\u0062" , ]"#, "a b"),
    ])
    func `scopes may be a list`(value: String, scope: String?) async throws {
        let token = try await load(.token(#""scope":\#(value),"refresh_token":"r""#))
        #expect(token == AccessToken("abc", lifetime: .seconds(300), scope: scope, refreshToken: "r"))
    }

    // Microsoft's extension is honoured if it is valid, and never invalidates a token.
    @Test(arguments: [
        ("50", Duration.seconds(50)), (#""50""#, .seconds(50)), ("0", nil), ("100", nil), ("101", nil), ("-1", nil),
        (#""x""#, nil), ("{}", nil), ("null", nil),
    ])
    func `refresh_in counts only within the lifetime`(value: String, refreshIn: Duration?) async throws {
        #expect(try await load(.token(#""expires_in":100,"refresh_in":\#(value)"#)).refreshIn == refreshIn)
    }

    // RFC 6749 §5.1 (required members), §3.2 (none twice), RFC 8259 §8.1 (UTF-8).
    @Test(arguments: [
        ("", "empty"), ("<html>", "not JSON"), ("{", "not JSON"), ("[]", "not a JSON object"), ("7", "not a JSON object"),
        ("{}", "access_token is missing"), (#"{"token_type":"Bearer"}"#, "access_token is missing"),
        (#"{"access_token":"abc","token_type":7}"#, "token_type has the wrong type"),
        (#"{"access_token":"","token_type":"Bearer"}"#, "access_token has an invalid value"),
        (#"{"access_token":"abc","token_type":"\n"}"#, "token_type has an invalid value"),
        (#"{"access_token":null,"token_type":"Bearer"}"#, "access_token"),
        (#"{"access_token":7,"token_type":"Bearer"}"#, "access_token has the wrong type"),
        (#"{"access_token":"a\r\nX: y","token_type":"Bearer"}"#, "access_token has an invalid value"),
        (#"{"access_token":"ü","token_type":"Bearer"}"#, "access_token has an invalid value"),
        (#"{"access_token":"a","token_type":"Bearer","scope":["a",1]}"#, "scope has the wrong type"),
        (#"{"access_token":"a","token_type":"Bearer","scope":["a\nb"]}"#, "scope has an invalid value"),
        (#"{"access_token":["a"],"token_type":"Bearer"}"#, "access_token has the wrong type"),
        (#"{"access_token":"a","token_type":"Bearer","scope":"a\nb"}"#, "scope has an invalid value"),
        (#"{"access_token":"a","token_type":"Bearer","refresh_token":7}"#, "refresh_token has the wrong type"),
        (#"{"access_token":"a","token_type":"Bearer","error":{}}"#, "error has the wrong type"),
        (#"{"access_token":"a","access_token":"b","token_type":"Bearer"}"#, "access_token is repeated"),
        (#"{"access_token":"a","token_type":"Bearer","access\u005ftoken":"b"}"#, "access_token is repeated"),
        (#"{"x":"\"","access_token":"a","access_token":"b","token_type":"Bearer"}"#, "access_token is repeated"),
        (#"{"access_token":"a","token_type":"Bearer"} {}"#, "not JSON"),
        (String(repeating: "[", count: 100_000), "not JSON"),
        (#"{"a":"\#(String(repeating: "x", count: 1 << 20))"}"#, "too long"),
    ])
    func `an answer that is not a token response is an error that says why`(body: String, reason: String) async throws {
        let failure = try await ClientCredentialsLoader(answer: TransportResponse(body)).failure()
        #expect(failure.code == .unreadableResponse)
        #expect(failure.remedy == .retry)
        #expect("\(failure)".contains(reason), "\(failure)")
    }

    @Test(arguments: [Data([0x7B, 0xFF, 0x7D]), Data("{\"a\":1}".utf16.flatMap { [UInt8($0), 0] }), Data([0xC3])])
    func `a body that is not UTF-8 is an error`(body: Data) async throws {
        let failure = try await ClientCredentialsLoader(answer: TransportResponse(status: 200, body: body)).failure()
        #expect("\(failure)".contains("not UTF-8"))
    }

    @Test func `the same name inside a nested member doesn't count as a repetition`() async throws {
        let members = #""access":{"access_token":1,"a":{"access_token":2}},"x":"\\\",\"access_token\":","y":[{"scope":1}]"#
        #expect(try await load(.token(members)).value == "abc")
    }

    @Test func `the error for an HTML page says that it is one`() async throws {
        let answer = TransportResponse(200, "<html>", headers: ["content-type": "text/html"])
        #expect(try await "\(ClientCredentialsLoader(answer: answer).failure())".contains("text/html"))
    }
}
