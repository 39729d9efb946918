import AccessTokens
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

/// What users are told of refusals that are not those of RFC 6749 §5.2.
@Suite(.inRealTime)
struct RefusalWordsTests {
    func failure(_ status: Int, _ body: String) async throws -> OAuthError {
        let client = try OAuthClient(
            id: "me", tokenURL: #require(URL(string: "https://as.example/token")),
            transport: ScriptedTransport { TransportResponse(status, body) })
        return try await #require(throws: OAuthError.self) { try await client.token(for: .refreshToken("r1")) }
    }

    @Test(
        arguments: [
            // Facebook, Google's APIs, OpenAI, Anthropic, Firebase.
            (
                400, #"{"error":{"message":"This code has been used.","type":"OAuthException","code":100,"fbtrace_id":"x"}}"#,
                "OAuthException", "This code has been used., code 100"
            ),
            (
                401,
                #"{"error":{"code":401,"message":"Invalid credentials.","status":"UNAUTHENTICATED","errors":[{"domain":"x"}]}}"#,
                "UNAUTHENTICATED", "Invalid credentials., code 401"
            ),
            (
                401, #"{"error":{"message":"Wrong key.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
                "invalid_api_key", "Wrong key."
            ),
            (401, #"{"type":"error","error":{"type":"authentication_error","message":"Bad."}}"#, "authentication_error", "Bad."),
            (
                400, #"{"error":{"code":400,"message":"TOKEN_EXPIRED","status":"INVALID_ARGUMENT"}}"#, "INVALID_ARGUMENT",
                "TOKEN_EXPIRED, code 400"
            ),
            // Fitbit, Strava, Shopify, Patreon.
            (
                400, #"{"errors":[{"errorType":"invalid_grant","message":"Refresh token invalid."}],"success":false}"#,
                "invalid_grant", "Refresh token invalid."
            ),
            (
                400, #"{"message":"Bad Request","errors":[{"resource":"Application","field":"client_id","code":"invalid"}]}"#,
                "invalid", "Bad Request, Application client_id invalid"
            ),
            (401, #"{"errors":"[API] Invalid API key"}"#, nil, "[API] Invalid API key"),
            (401, #"{"errors":[{"code":1,"code_name":"Unauthorized","detail":"No token."}]}"#, "Unauthorized", "No token."),
            // HubSpot, Zoom, Twitch, X, Reddit, Notion, Okta, Supabase, Dropbox, WeChat.
            (400, #"{"status":"BAD_REFRESH_TOKEN","message":"missing or invalid"}"#, "BAD_REFRESH_TOKEN", "missing or invalid"),
            (400, #"{"reason":"Invalid Token!","error":"invalid_request"}"#, "invalid_request", "Invalid Token!"),
            (400, #"{"status":400,"message":"Invalid refresh token"}"#, nil, "Invalid refresh token"),
            (401, #"{"title":"Unauthorized","type":"about:blank","status":401,"detail":"Unauthorized"}"#, nil, "Unauthorized"),
            (401, #"{"message":"Unauthorized","error":401}"#, "401", "Unauthorized"),
            (401, #"{"object":"error","status":401,"code":"unauthorized","message":"Invalid."}"#, "unauthorized", "Invalid."),
            (401, #"{"errorCode":"E0000004","errorSummary":"Authentication failed"}"#, "E0000004", "Authentication failed"),
            (
                400, #"{"code":400,"error_code":"refresh_token_not_found","msg":"Not Found"}"#, "refresh_token_not_found",
                "Not Found"
            ),
            (
                401, #"{"error_summary":"expired/..","error":{".tag":"expired_access_token"}}"#, "expired_access_token",
                "expired/.."
            ),
            (200, #"{"errcode":40029,"errmsg":"invalid code"}"#, "40029", "invalid code"),
            // A status of success.
            (200, #"{"ok":false,"error":"fatal_error"}"#, "fatal_error", nil), (200, #"{"ok":false}"#, nil, nil),
            (200, #"{"error":{"message":"No."}}"#, nil, "No."), (200, #"{"error":true,"message":"No."}"#, nil, "No."),
            (400, #"{"error_description":"a","message":"b","errors":["c"]}"#, nil, "a"), (400, #"{"errors":[{}]}"#, nil, nil),
            (400, "message=No+such+app&error_code=7", "7", "No such app"), (400, "<html>message", nil, nil),
        ] as [(Int, String, String?, String?)])
    func `a server's explanation is found in each member where servers write it`(
        status: Int, body: String, code: String?, words: String?
    ) async throws {
        let failure = try await failure(status, body)
        #expect(failure.code == .refused && failure.error == code && failure.serverDescription == words, "\(failure)")
        if let words { #expect("\(failure)".contains(words)) }
    }

    @Test(arguments: [
        #""errors":[],"error_code":0,"errcode":0"#, #""ok":true"#, #""error":null,"success":true"#, #""message":"ok""#,
    ])
    func `an answer isn't a refusal because of error members that say nothing`(members: String) async throws {
        let client = try OAuthClient(
            id: "me", tokenURL: #require(URL(string: "https://as.example/token")),
            transport: ScriptedTransport { .token(members) })
        #expect(try await client.token(for: .refreshToken("r1")).token.value == "abc")
        #expect(try await failure(200, "{\(members)}").code == .unreadableResponse)
    }

    @Test func `18: a server's words from any member are redacted and shortened`() async throws {
        let long = String(repeating: "word ", count: 1000)
        for name in ["message", "reason", "errorSummary"] {
            let failure = try await failure(400, #"{"\#(name)":"r1-s3cr3t-t0ken: Bearer nEw-t0ken_4Vx9 \#(long)"}"#)
            #expect(!texts(failure).contains("4Vx9") && "\(failure)".utf8.count < 1000)
        }
    }

    // Auth0's mfa_token; Entra's claims.
    @Test func `a refusal's members are there for the program, and in no text`() async throws {
        let failure = try await failure(
            403, #"{"error":"mfa_required","mfa_token":"Fe26.2xyz","claims":"{\"a\":1}","x":{"y":[7]}}"#)
        #expect(failure.members?["mfa_token"] == "Fe26.2xyz" && failure.members?["claims"] == #"{"a":1}"#)
        struct Nested: Decodable { let x: [String: [Int]] }
        #expect(try failure.members?.decoded(as: Nested.self).x == ["y": [7]])
        #expect(!texts(failure).contains("Fe26") && !texts(failure as Any).contains("Fe26"))
    }

    @Test(arguments: [
        #"{"error":"e","access_token":"nEw-t0ken_4Vx9"}"#, #"{"error":"e","refresh_token":"nEw-t0ken_4Vx9"}"#, "<html>",
        #"{"error":"e","x":"\#(String(repeating: "x", count: 70_000))"}"#,
    ])
    func `an error keeps neither new tokens nor a long body`(body: String) async throws {
        #expect(try await failure(400, body).members == nil)
    }
}
