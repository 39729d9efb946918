import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

/// With a clock that stands still until the test moves it.
@Suite(.timeLimit(.minutes(5)))
struct DeviceSignInTests {
    let clock = ManualClock()

    // RFC 8628 §3.2: its example.
    static let codes = TransportResponse(
        #"""
        {
          "device_code": "GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS",
          "user_code": "WDJB-MJHT",
          "verification_uri": "https://example.com/device",
          "verification_uri_complete":
              "https://example.com/device?user_code=WDJB-MJHT",
          "expires_in": 1800,
          "interval": 5
        }
        """#)

    static func error(_ code: String, _ status: Int = 400, retryAfter: String? = nil) -> TransportResponse {
        var answer = TransportResponse(status, #"{"error":"\#(code)"}"#)
        answer.headers["Retry-After"] = retryAfter
        return answer
    }

    /// Returns a server with scripted answers, and a client of it.
    func client(_ answers: [TransportResponse]) throws -> (OAuthClient, ScriptedTransport) {
        let rest = Lock(answers)
        let transport = ScriptedTransport {
            let next = rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let next, next.status != 0 else { throw URLError(.networkConnectionLost) }
            return next
        }
        let url = try #require(URL(string: "https://server.example.com/token"))
        return (try OAuthClient(id: "1406020730", tokenURL: url, transport: transport), transport)
    }

    func signIn(_ client: OAuthClient, scope: String? = nil) async throws -> DeviceSignIn {
        let url = try #require(URL(string: "https://server.example.com/device_authorization"))
        return try await DeviceSignIn(client, deviceAuthorizationURL: url, scope: scope, clock: clock)
    }

    // RFC 8628 §3.1, §3.4: its examples, of a public client.
    @Test func `the requests match the specification's examples`() async throws {
        let (client, transport) = try client([Self.codes, .token(#""expires_in":60"#)])
        let signIn = try await signIn(client, scope: "example_scope")
        #expect(signIn.userCode == "WDJB-MJHT" && signIn.verificationURI == "https://example.com/device")
        #expect(signIn.verificationURIComplete == "https://example.com/device?user_code=WDJB-MJHT")
        #expect(signIn.lifetime == .seconds(1800))
        let token = Task { try await signIn.token() }
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(5))
        #expect(try await token.value.token.value == "abc")
        #expect(
            transport.requests.map { String(decoding: $0.body, as: UTF8.self) } == [
                "scope=example_scope&client_id=1406020730",
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code"
                    + "&device_code=GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS&client_id=1406020730",
            ])
        #expect(transport.requests.map(\.url.path) == ["/device_authorization", "/token"])
        #expect(!texts(signIn).contains("WDJB") && !texts(signIn).contains("GmRhm"))
    }

    /// Waits for each pause, and lets just that much time pass.
    func pass(_ pauses: [Int], until transport: ScriptedTransport) async throws {
        for (index, pause) in pauses.enumerated() {
            try await clock.waitForSleepers()
            #expect(transport.requests.count == index + 1)
            clock.advance(by: .seconds(pause) - .milliseconds(1))
            #expect(clock.sleeperCount == 1, "pause \(index) is shorter than \(pause) s")
            clock.advance(by: .milliseconds(1))
        }
    }

    // RFC 8628 §3.5: slow_down has a lasting effect; a broken connection lengthens pauses only until there is an answer.
    @Test(
        arguments: [
            ([error("authorization_pending"), error("authorization_pending")], [5, 5, 5]),
            ([error("slow_down"), error("authorization_pending"), error("slow_down", 429)], [5, 10, 10, 15]),
            ([TransportResponse(status: 0), TransportResponse(status: 0), error("authorization_pending")], [5, 10, 20, 5]),
            ([error("", 429, retryAfter: "40"), error("authorization_pending")], [5, 40, 5]),
            ([error("", 503), error("slow_down")], [5, 10, 10]), ([error("", 429, retryAfter: "1")], [5, 10]),
        ] as [([TransportResponse], [Int])])
    func `a device sign-in polls at the server's pace`(answers: [TransportResponse], pauses: [Int]) async throws {
        let (client, transport) = try client([Self.codes] + answers + [.token(#""refresh_token":"r""#)])
        let signIn = try await signIn(client)
        let token = Task { try await signIn.token() }
        try await pass(pauses, until: transport)
        #expect(try await token.value.token.refreshToken == "r")
        #expect(transport.requests.count == pauses.count + 1)
    }

    @Test(arguments: [
        (error("access_denied"), TokenServiceError.Remedy.signIn), (error("access_denied", 403), .signIn),
        (error("expired_token"), .signIn), (error("invalid_grant"), .signIn), (error("invalid_client", 401), .clientRegistration),
        (error("odd"), .signInOrRegistration), (TransportResponse("<html>"), .retry), (TransportResponse(302, ""), .retry),
    ])
    func `any other answer ends the sign-in`(answer: TransportResponse, remedy: TokenServiceError.Remedy) async throws {
        let (client, transport) = try client([Self.codes, answer])
        let signIn = try await signIn(client)
        let token = Task { try await signIn.token() }
        try await pass([5], until: transport)
        let failure = try await #require(throws: OAuthError.self) { try await token.value }
        #expect(failure.remedy == remedy && transport.requests.count == 2)
        #expect(!texts(failure).contains("GmRhm"))
    }

    // A signer elsewhere that doesn't answer in time, as a DPoP key's or a client's.
    @Test(arguments: [ScriptedFailure(retryAfter: .seconds(7)), .grantRefused])
    func `a signer's failure ends a sign-in only if waiting doesn't help`(failure: ScriptedFailure) async throws {
        let answers = Lock([Self.codes, .token()]), failures = Lock([nil, failure])
        let transport = ScriptedTransport { answers.withLock { $0.removeFirst() } }
        let client = try OAuthClient(
            id: "app",
            authentication: .privateKeyJWT(algorithm: "ES256", audience: "https://server.example.com") { _ in
                if let failure = failures.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { throw failure }
                return Data("signature".utf8)
            }, tokenURL: #require(URL(string: "https://server.example.com/token")), transport: transport)
        let signIn = try await signIn(client)
        let token = Task { try await signIn.token() }
        for pause in failure.remedy == .retry ? [5, 10] : [5] {
            try await clock.waitForSleepers()
            clock.advance(by: .seconds(pause))
        }
        guard failure.remedy == .retry else {
            await #expect(throws: failure) { try await token.value }
            return
        }
        #expect(try await token.value.token.value == "abc" && transport.requests.count == 2)
    }

    // A captive portal, a firewall, a gateway without the route.
    @Test(arguments: [
        TransportResponse("<html>"), TransportResponse(302, ""), TransportResponse(403, "<html>"),
        TransportResponse(404, "<html>"),
        TransportResponse(404, #"{"message":"no Route matched"}"#), TransportResponse(""), TransportResponse(403, "code=7"),
    ])
    func `an answer from something else doesn't end a sign-in once the server has answered a poll`(
        answer: TransportResponse
    ) async throws {
        let (client, transport) = try client(
            [Self.codes, Self.error("authorization_pending"), answer, answer, Self.error("slow_down"), .token()])
        let signIn = try await signIn(client)
        let token = Task { try await signIn.token() }
        try await pass([5, 5, 10, 20, 10], until: transport)
        #expect(try await token.value.token.value == "abc")
    }

    @Test(arguments: [
        error("access_denied"), error("invalid_client", 401), error("odd"), TransportResponse(#"{"access_token":7}"#),
        TransportResponse(#"{"access_token":"a","token_type":"mac"}"#),
    ])
    func `an error from the server itself ends the sign-in at any time`(answer: TransportResponse) async throws {
        let (client, transport) = try client([Self.codes, Self.error("authorization_pending"), answer])
        let signIn = try await signIn(client)
        let token = Task { try await signIn.token() }
        try await pass([5, 5], until: transport)
        _ = try await #require(throws: OAuthError.self) { try await token.value }
        #expect(transport.requests.count == 3)
    }

    @Test(
        arguments: [
            (error("", 500), "status 500"), (TransportResponse("<html>"), "it is not JSON"),
            (error("authorization_pending"), nil),
        ] as [(TransportResponse, String?)])
    func `the error of an expired sign-in says if the server was in trouble`(answer: TransportResponse, words: String?)
        async throws
    {
        let (client, transport) = try client(
            [Self.codes, Self.error("authorization_pending")] + .init(repeating: answer, count: 400))
        let signIn = try await signIn(client)
        let token = Task { try await signIn.token() }
        while transport.requests.count < 500, clock.now.offset < .seconds(1800) {
            try await clock.waitForSleepers()
            clock.advance(by: .seconds(5))
        }
        let failure = try await #require(throws: OAuthError.self) { try await token.value }
        #expect(failure.code == .signInExpired && failure.remedy == .signIn)
        #expect("\(failure)".contains("The last attempt to ask for the token failed: ") == (words != nil))
        if let words { #expect("\(failure)".contains(words), "\(failure)") }
    }

    @Test func `nothing is requested after the code has expired`() async throws {
        let codes = #"{"device_code":"d","user_code":"u","verification_url":"https://v","expires_in":"12"}"#
        let (client, transport) = try client(
            [TransportResponse(codes)] + .init(repeating: Self.error("authorization_pending"), count: 9))
        let signIn = try await signIn(client)
        #expect(signIn.verificationURI == "https://v" && signIn.verificationURIComplete == nil)
        let token = Task { try await signIn.token() }
        try await pass([5, 5, 2], until: transport)
        let failure = try await #require(throws: OAuthError.self) { try await token.value }
        #expect(failure.code == .signInExpired && failure.remedy == .signIn && !failure.mayBeUnderWay)
        #expect(transport.requests.count == 3)
    }

    // RFC 8628 §3.5: the interval separates requests; there is none before the first.
    @Test(arguments: [
        (6, 5, 0, 5000), (5, 5, 0, 4000), (3, 5, 0, 2000), (2, 5, 0, 1000), (1, 5, 0, 500), (1800, 1800, 0, 1_799_000),
        (1800, 5, 1797, 2000), (1800, 5, 1799, 500),
    ])
    func `a code that expires before the interval is polled once`(
        lifetime: Int, interval: Int, late: Int, pause: Int
    ) async throws {
        let codes =
            #"{"device_code":"d","user_code":"u","verification_uri":"v","expires_in":\#(lifetime),"interval":\#(interval)}"#
        for isSignedIn in [true, false] {
            let (client, transport) = try client(
                [TransportResponse(codes), isSignedIn ? .token() : Self.error("authorization_pending")])
            let signIn = try await signIn(client)
            clock.advance(by: .seconds(late))
            let token = Task { try await signIn.token() }
            try await clock.waitForSleepers()
            clock.advance(by: .milliseconds(pause - 1))
            #expect(transport.requests.count == 1 && clock.sleeperCount == 1)
            clock.advance(by: .milliseconds(1))
            if isSignedIn {
                #expect(try await token.value.token.value == "abc")
            } else {
                try await clock.waitForSleepers()
                clock.advance(by: .seconds(lifetime - late) - .milliseconds(pause))
                #expect(try await #require(throws: OAuthError.self) { try await token.value }.code == .signInExpired)
            }
            #expect(transport.requests.count == 2)
        }
    }

    @Test func `a code that expires at once is never polled`() async throws {
        let (client, transport) = try client(
            [TransportResponse(#"{"device_code":"d","user_code":"u","verification_uri":"v","expires_in":0}"#)])
        let signIn = try await signIn(client)
        #expect(try await #require(throws: OAuthError.self) { try await signIn.token() }.code == .signInExpired)
        #expect(transport.requests.count == 1)
    }

    @Test func `a cancelled wait ends at once`() async throws {
        let (client, transport) = try client([Self.codes])
        let signIn = try await signIn(client)
        let token = Task { try await signIn.token() }
        try await clock.waitForSleepers()
        token.cancel()
        await #expect(throws: CancellationError.self) { try await token.value }
        #expect(transport.requests.count == 1)
    }

    @Test(arguments: [
        (#"{"user_code":"u","verification_uri":"https://v","expires_in":9}"#, "device_code"),
        (#"{"device_code":"d","verification_uri":"https://v","expires_in":9}"#, "user_code"),
        (#"{"device_code":"d","user_code":"u\u001b[2J","verification_uri":"https://v","expires_in":9}"#, "user_code"),
        (#"{"device_code":"d","user_code":"u","expires_in":9}"#, "verification_uri"),
        (#"{"device_code":"d","user_code":"u","verification_uri":"https://v"}"#, "expires_in"),
        (#"{"device_code":"d","user_code":"u","verification_uri":"https://v","expires_in":-1}"#, "expires_in"),
        ("<html>", "not JSON"),
    ])
    func `an answer without the codes is an error`(body: String, reason: String) async throws {
        let (client, _) = try client([TransportResponse(body)])
        let failure = try await #require(throws: OAuthError.self) { try await signIn(client) }
        #expect(failure.code == .unreadableResponse && "\(failure)".contains(reason), "\(failure)")
    }
}
