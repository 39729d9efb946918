import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite(.inRealTime)
struct OAuthErrorTests {
    // RFC 6749 §5.2; the status of a busy or broken server takes precedence over the code.
    @Test(arguments: [
        // No user can sign in again for a program that acts for itself.
        (400, "invalid_grant", TokenServiceError.Remedy.clientRegistration), (200, "invalid_grant", .clientRegistration),
        (401, "invalid_client", .clientRegistration),
        (400, "unauthorized_client", .clientRegistration), (400, "unsupported_grant_type", .clientRegistration),
        (400, "invalid_scope", .clientRegistration), (400, "invalid_request", .clientRegistration),
        (400, "invalid_target", .clientRegistration), (400, "slow_down", .retry), (200, "server_error", .retry),
        (401, "access_denied", .clientRegistration), (503, "invalid_grant", .retry), (500, "invalid_client", .retry),
        (429, "invalid_client", .retry), (408, "invalid_request", .retry),
    ])
    func `an OAuth error says how to recover from it`(status: Int, error: String, remedy: TokenServiceError.Remedy) async throws {
        let answer = TransportResponse(status, #"{"error":"\#(error)","error_description":"Because.","error_uri":"https://x"}"#)
        let failure = try await ClientCredentialsLoader(answer: answer).failure()
        #expect(failure.code == .refused)
        #expect(failure.error == error)
        #expect(failure.serverDescription == "Because.")
        #expect(failure.status == status)
        #expect(failure.remedy == remedy)
        #expect("\(failure)".contains(error) && "\(failure)".contains("Because."))
        #expect((failure as any Error).localizedDescription == failure.description)
    }

    // Glewlwyd 2.7.5 refuses a wrong secret with an empty 403.
    @Test(
        arguments: [
            (400, TokenServiceError.Remedy.retry), (401, .clientRegistration), (403, .clientRegistration), (404, .retry),
            (408, .retry),
            (429, .retry), (500, .retry), (502, .retry), (503, .retry), (599, .retry), (0, .retry),
        ], ["", "{}", #"{"error":{}}"#, #"{"error":"a","error":"b"}"#])
    func `a status without a readable error says how to recover from it`(expected: (Int, TokenServiceError.Remedy), body: String)
        async throws
    {
        let failure = try await ClientCredentialsLoader(answer: TransportResponse(expected.0, body)).failure()
        #expect(failure.code == .refused)
        #expect(failure.error == nil)
        #expect(failure.status == expected.0)
        #expect(failure.remedy == expected.1)
        #expect("\(failure)".contains("\(expected.0)"))
    }

    // RFC 9700 §4.12.
    @Test(arguments: [300, 301, 302, 303, 307, 308])
    func `a redirect is an error that asks for the final URL`(status: Int) async throws {
        let failure = try await ClientCredentialsLoader(answer: TransportResponse(status, "", headers: ["Location": "/"]))
            .failure()
        #expect(failure.code == .redirected)
        #expect(failure.remedy == .retry)
        #expect("\(failure)".contains("final URL"))
    }

    @Test(arguments: [(401, #"{"error":"invalid_client"}"#), (404, ""), (200, "<html>"), (307, "")])
    func `an error says where the request went`(status: Int, body: String) async throws {
        let client = try OAuthClient(
            id: "reports", authentication: .clientSecretBasic("xyzzy"),
            tokenURL: #require(URL(string: "https://as.example/t1/token?p=plugh")),
            transport: ScriptedTransport { TransportResponse(status, body) })
        let text = try await "\(ClientCredentialsLoader(client).failure())"
        #expect(text.contains("at https://as.example/t1/token") && !text.contains("plugh"), "\(text)")
        if status == 401 { #expect(text.contains("id (reports)") && text.contains("method (client_secret_basic)"), "\(text)") }
    }

    @Test func `an error of the network says where the request went`() async throws {
        struct Broken: Error {}
        let loader = try RefreshTokenLoader(
            tokenURL: #require(URL(string: "https://as.example/token")), clientID: "app",
            transport: ScriptedTransport { throw Broken() })
        let failure = try await loader.failure(replacing: AccessToken("", refreshToken: "r"))
        #expect("\(failure)".contains("at https://as.example/token"))
    }

    // RFC 9110 §10.2.3 and §5.6.7. The wall clock shows 1994-11-06 08:49:07 UTC.
    @Test(arguments: [
        ("120", Duration.seconds(120)), (" 7 ", .seconds(7)), ("1", .seconds(1)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", .seconds(30)), ("Sunday, 06-Nov-94 08:49:37 GMT", .seconds(30)),
        ("Sun Nov  6 08:49:37 1994", .seconds(30)), ("Sun, 06 Nov 1994 08:49:60 GMT", .seconds(53)),
        ("Monday, 07-Nov-44 08:49:07 GMT", .seconds(315_360_000)), ("Tuesday, 07-Nov-45 08:49:07 GMT", nil),
        ("99999999999999999999", .seconds(315_360_000)), (String(repeating: "9", count: 1000), .seconds(315_360_000)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", .seconds(315_360_000)), ("Sun, 06 Nov 1994 08:49:07 GMT", nil),
        ("Sat, 05 Nov 1994 08:49:37 GMT", nil), ("0", nil), ("", nil), ("-5", nil), ("+5", nil), ("1.5", nil), ("soon", nil),
        ("Sun, 31 Feb 1995 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 25:00:00 GMT", nil), ("Sun, 06 Nov 1994 08:49:37 CET", nil),
        ("Sun, 06 Foo 1994 08:49:37 GMT", nil), ("Sun, +6 Nov 1994 08:49:37 GMT", nil), ("nan", nil), ("inf", nil),
        ("٣", nil), (", , , , , , , ", nil),
    ])
    func `Retry-After is a number of seconds or a date`(value: String, wait: Duration?) async throws {
        let answer = TransportResponse(503, "", headers: ["retry-AFTER": value])
        let now = Date(timeIntervalSince1970: 784_111_747)
        #expect(try await ClientCredentialsLoader(answer: answer, now: now).failure().retryAfter == wait)
    }

    // RFC 9110 §5.6.1 (two gateways add a header each) and §6.6.1. A server that means 20 s, seen by clocks that differ.
    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:27 GMT", .seconds(20)), ("120, 120", .seconds(120)), ("60, 120", .seconds(120)),
            ("120, soon", .seconds(120)), ("Sun, 06 Nov 1994 08:49:17 GMT, Sun, 06 Nov 1994 08:49:27 GMT", .seconds(20)),
            ("7, Sun, 06 Nov 1994 08:49:27 GMT", .seconds(20)), ("Sun Nov  6 08:49:27 1994, 3", .seconds(20)),
            ("Sun, 06 Nov 1994 08:49:07 GMT", nil),
        ] as [(String, Duration?)], [-7_200, -90, 0, 90, 7_200, 1e9, -7e8, .nan] as [TimeInterval])
    func `Retry-After counts from the answer's own Date, whatever this machine's clock says`(
        header: (value: String, wait: Duration?), ahead: TimeInterval
    ) async throws {
        for date in ["Sun, 06 Nov 1994 08:49:07 GMT", "Sun, 06 Nov 1994 08:49:07 GMT, Sun, 06 Nov 1994 08:49:07 GMT"] {
            let answer = TransportResponse(503, "", headers: ["Retry-After": header.value, "date": date])
            let now = Date(timeIntervalSince1970: 784_111_747 + ahead)
            #expect(try await ClientCredentialsLoader(answer: answer, now: now).failure().retryAfter == header.wait)
        }
    }

    @Test func `the server's words are shortened to one line`() async throws {
        let description = #"A\r\nB\u0000\u001b[31m\u202eC \#(String(repeating: "long ", count: 10_000))"#
        let answer = TransportResponse(400, #"{"error":"odd\nerror","error_description":"\#(description)"}"#)
        let failure = try await ClientCredentialsLoader(answer: answer).failure()
        #expect(failure.error == "odd error")
        let text = try #require(failure.serverDescription)
        #expect(text.hasPrefix("A B [31m C long long"))
        #expect(text.count == 301 && text.hasSuffix("…"))
    }
}
