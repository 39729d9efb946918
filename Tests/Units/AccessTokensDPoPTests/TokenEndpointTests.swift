import AccessTokens
import AccessTokensDPoP
import AccessTokensHTTP
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// Proofs and nonces at the token endpoint.
struct TokenEndpointTests {
    let old = AccessToken("old", tokenType: "DPoP", lifetime: .zero, refreshToken: "r0")

    /// Loads with the refresh token `r0`, and returns the error, which there must be.
    func failure(_ server: NonceServer, key: DPoPKey? = nil, authentication: ClientAuthentication = .publicClient) async throws
        -> OAuthError
    {
        let client = try OAuthClient.test(key ?? .test(), server, authentication: authentication)
        return try await #require(throws: OAuthError.self) {
            try await RefreshTokenLoader(client).loadToken(replacing: old)
        }
    }

    @Test func `47: a refresh whose nonce is refused is sent once more, spends its token once, and the nonce is kept`()
        async throws
    {
        let server = NonceServer(), key = try DPoPKey.test()
        let loader = try RefreshTokenLoader(OAuthClient.test(key, server))
        let first = try await loader.loadToken(replacing: old)
        #expect(server.facts.requests.count == 2 && server.facts.spent == ["r0"])
        #expect(server.facts.requests[0].body == server.facts.requests[1].body)
        #expect(first.tokenType == "DPoP" && first.keyThumbprint == key.keyThumbprint && first.refreshToken == "r1")
        _ = try await loader.loadToken(replacing: first)
        #expect(server.facts.requests.count == 3 && server.facts.spent == ["r0", "r1"] && server.facts.refusals == 1)
    }

    // bluesky-social/atproto#3852: the nonce in the success after a retry was forgotten, so each call took two requests.
    @Test func `a nonce that comes with a success is used next, also after a repetition`() async throws {
        let server = NonceServer(uses: 1)
        let loader = try RefreshTokenLoader(OAuthClient.test(DPoPKey.test(), server))
        var token = old
        for _ in 1...10 { token = try await loader.loadToken(replacing: token) }
        #expect(server.facts.refusals == 1 && server.facts.requests.count == 11)
        #expect(server.facts.spent == (0..<10).map { "r\($0)" })
    }

    // Answers that don't say whether the grant was spent, or say that it was.
    @Test(arguments: [
        TransportResponse.refusal("use_dpop_nonce", status: 500, nonce: "n"), .refusal("use_dpop_nonce", status: 502, nonce: "n"),
        .refusal("use_dpop_nonce", status: 200, nonce: "n"), .refusal("use_dpop_nonce", status: 403, nonce: "n"),
        .refusal("invalid_grant", nonce: "n"), .refusal("invalid_dpop_proof", nonce: "n"),
        .refusal("invalid_client", status: 401, nonce: "n"),
        .refusal("USE_DPOP_NONCE", nonce: "n"),
        TransportResponse(status: 400, headers: ["DPoP-Nonce": "n"], body: Data("use_dpop_nonce".utf8)),
        TransportResponse(status: 400, headers: ["DPoP-Nonce": "n"], body: Data(#"{"error":"use_dpop_nonce","error":"x"}"#.utf8)),
        TransportResponse(status: 400, headers: ["DPoP-Nonce": "n"], body: Data(#"{"error":"use_dpop_nonce""#.utf8)),
        TransportResponse(status: 400, headers: ["DPoP-Nonce": "n", "WWW-Authenticate": "DPoP error=\"use_dpop_nonce\""]),
    ])
    func `the grant is sent again only after an unmistakable use_dpop_nonce`(answer: TransportResponse) async throws {
        let server = NonceServer(script: [answer])
        _ = try await failure(server)
        #expect(server.facts.requests.count == 1 && server.facts.spent == [])
    }

    @Test func `after a lost answer the grant is not sent again, even if it is the repetition's answer`() async throws {
        struct Lost: Error {}
        for lost in 1...2 {
            let server = NonceServer { if $0 == lost { throw Lost() } }
            let error = try await failure(server)
            #expect(error.code == .connectionFailed && error.mayBeUnderWay && server.facts.requests.count == lost)
        }
    }

    @Test(
        arguments: [
            (nil, "It sends none."), ("", "it is empty"),
            (String(repeating: "n", count: 8192), "it has 8192 bytes; at most 1024"),
            ("a, b", "or the header is repeated"),
        ] as [(String?, String)])
    func `a demand for a nonce without a usable one is a clear error, and spends nothing`(nonce: String?, problem: String)
        async throws
    {
        let server = NonceServer(script: [.refusal("use_dpop_nonce", nonce: nonce)])
        let error = try await failure(server)
        #expect(server.facts.requests.count == 1 && server.facts.spent == [])
        #expect(error.code == .refused && error.error == "use_dpop_nonce" && error.remedy == .retry && !error.mayBeUnderWay)
        #expect(error.description.contains(problem) && error.description.hasSuffix("Nothing was spent."), "\(error)")
        #expect(!texts(error).contains("nnnnnnnn"))
    }

    @Test func `a server that refuses each nonce that it sends gets two requests`() async throws {
        let server = NonceServer(script: [
            .refusal("use_dpop_nonce", nonce: "a"), .refusal("use_dpop_nonce", status: 401, nonce: "b"),
            .refusal("use_dpop_nonce", nonce: "b"),
        ])
        let key = try DPoPKey.test()
        let error = try await failure(server, key: key)
        #expect(server.facts.requests.count == 2 && error.description.contains("It refused the nonce that it had just sent."))
        // The next request uses the last nonce, which the server refuses, too.
        #expect(try await failure(server, key: key).description.contains("It sent the nonce that it had refused."))
        #expect(server.facts.requests.count == 3)
    }

    @Test func `a success with a nonce of 8 kB loses neither token nor refresh token`() async throws {
        let nonce = String(repeating: "n", count: 8192)
        let server = NonceServer(script: [.bound(#""refresh_token":"r1""#, nonce: nonce), .bound(#""expires_in":1"#)])
        let loader = try RefreshTokenLoader(OAuthClient.test(DPoPKey.test(), server))
        #expect(try await loader.loadToken(replacing: old).refreshToken == "r1")
        _ = try await loader.loadToken(replacing: old)
        #expect(SentProof(server.facts.requests[1].headers["DPoP"])?["nonce"] == nil)
    }

    // RFC 7523 §3: a server refuses an assertion whose `jti` is repeated.
    @Test func `a repetition carries a new proof and a new assertion`() async throws {
        let server = NonceServer(), count = Lock(0)
        let authentication = ClientAuthentication.assertion {
            count.withLock { count in
                count += 1
                return "assertion-\(count)"
            }
        }
        let client = try OAuthClient.test(DPoPKey.test(), server, authentication: authentication)
        _ = try await RefreshTokenLoader(client).loadToken(replacing: old)
        let bodies = server.facts.requests.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies.map { $0.contains("assertion-1") } == [true, false] && bodies[1].contains("assertion-2"))
        #expect(Set(server.facts.proofs).count == 2)
    }

    @Test func `an authorization server's nonce is sent only to that server`() async throws {
        let one = NonceServer(), two = NonceServer(), key = try DPoPKey.test()
        _ = try await OAuthClient.test(key, one).token(for: .jwtBearer("a"))
        _ = try await OAuthClient.test(key, two, tokenURL: "https://other.example/token").token(for: .jwtBearer("a"))
        #expect(SentProof(two.facts.requests[0].headers["DPoP"])?["nonce"] == nil)
        // Another endpoint of the same server.
        _ = try await OAuthClient.test(key, one, tokenURL: "https://as.example/other").token(for: .jwtBearer("a"))
        #expect(one.facts.refusals == 1 && two.facts.refusals == 1)
    }

    // RFC 9449 §5: a token of another type isn't bound, so the key would protect nothing.
    @Test func `a Bearer token for a client with a key is an error, unless the program accepts it`() async throws {
        let answer = TransportResponse.bound(#""expires_in":9"#, type: "bearer")
        let client = try OAuthClient.test(DPoPKey.test(), NonceServer(script: [answer]))
        let error = await #expect(throws: OAuthError.self) { try await client.token(for: .jwtBearer("a")) }
        #expect(error?.code == .unsupportedTokenType && error?.description.contains("ignored the client's proof") == true)
        let lax = try OAuthClient.test(
            DPoPKey.test(), NonceServer(script: [answer]), acceptedTokenTypes: ["DPoP", "Bearer"])
        let token = try await lax.token(for: .jwtBearer("a")).token
        #expect(token.tokenType == "Bearer" && token.keyThumbprint == nil)
        // Likewise, a client without a key can't use a bound token.
        let plain = try OAuthClient.test(nil, NonceServer(script: [.bound(#""expires_in":9"#)]))
        await #expect(throws: OAuthError.self) { try await plain.token(for: .jwtBearer("a")) }
    }

    // Each answer spends a refresh token, and only a change at the server helps.
    @Test(arguments: ["Bearer", ""])
    func `a server that ignores proofs is asked once an hour, not each minute`(type: String) async throws {
        let answer = { (next: String) in TransportResponse.bound(#""expires_in":9,"refresh_token":"\#(next)""#, type: type) }
        let server = NonceServer(script: [answer("r1"), answer("r2")]), clock = ManualClock()
        let client = try OAuthClient.test(DPoPKey.test(), server)
        let tokens = TokenService(environment: .init(clock: clock), loader: try RefreshTokenLoader(client))
        await tokens.replace(with: AccessToken("old", tokenType: "DPoP", lifetime: .zero, refreshToken: "r0"))
        for _ in 0..<60 {
            let error = try await #require(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
            #expect("\(error)".contains("ignored the client's proof") && server.facts.requests.count == 1)
            clock.advance(by: .seconds(59))
        }
        clock.advance(by: .seconds(61))
        _ = try? await tokens.retrieveToken()
        #expect(server.facts.requests.count == 2)
        #expect(String(decoding: server.facts.requests[1].body, as: UTF8.self).contains("refresh_token=r1"))
    }

    @Test(arguments: [nil, ["DPoP"], ["DPoP", "Bearer"]] as [Set<String>?])
    func `a token without a type is never taken for a bound one`(acceptedTokenTypes: Set<String>?) async throws {
        let answer = TransportResponse(status: 200, body: Data(#"{"access_token":"a","refresh_token":"r2"}"#.utf8))
        let client = try OAuthClient.test(
            DPoPKey.test(), NonceServer(script: [answer]), acceptedTokenTypes: acceptedTokenTypes)
        let salvaged = await #expect(throws: SalvagedGrant.self) { try await client.token(for: .refreshToken("r1")) }
        #expect((salvaged?.reason as? OAuthError)?.description.contains("ignored the client's proof") == true)
        #expect(salvaged?.grant.refreshToken == "r2")
    }

    @Test func `the error names a clock that is wrong by an hour, with the server's time`() async throws {
        let now = Date(timeIntervalSince1970: 784_111_777)
        let script = [
            TransportResponse.refusal("invalid_dpop_proof", headers: ["Date": "Sun, 06 Nov 1994 07:49:37 GMT"]),
            .refusal("invalid_dpop_proof", headers: ["Date": "Sun, 06 Nov 1994 08:49:20 GMT"]), .refusal("invalid_dpop_proof"),
        ]
        let server = NonceServer(script: script), key = try DPoPKey.test(wallClock: { now })
        let error = try await failure(server, key: key)
        #expect(
            error.description
                == "The authorization server at https://as.example/token refused the request: invalid_dpop_proof, status 400. Correct this "
                + "machine's clock, or the server's: the proof was made at 1994-11-06T08:49:37Z, and the server's Date is "
                + "1994-11-06T07:49:37Z.")
        #expect(error.remedy == .programChange && server.facts.spent == [])
        for _ in 1...2 { #expect(try await !failure(server, key: key).description.contains("clock")) }
    }

    @Test func `a signing closure that takes a minute ends the refresh after ten seconds, and nothing is spent`() async throws {
        let server = NonceServer(), clock = ManualClock()
        let loader = try RefreshTokenLoader(
            OAuthClient.test(
                DPoPKey.test(
                    clock: clock,
                    sign: { _ in
                        try await clock.sleep(for: .seconds(60))
                        return Data(count: 64)
                    }), server))
        let load = Task { try await loader.loadToken(replacing: AccessToken("old", tokenType: "DPoP", refreshToken: "r0")) }
        try await clock.waitForSleepers(2)
        clock.advance(by: .seconds(10))
        let error = await #expect(throws: DPoPError.self) { _ = try await load.value }
        #expect(error?.code == .signingTimedOut && error?.mayBeUnderWay == false && server.facts.requests.isEmpty)
    }

    @Test func `a signing closure that throws or returns an invalid signature costs no grant and shows nothing`()
        async throws
    {
        struct Broken: Error { let secret = "the-pin" }
        let server = NonceServer()
        let error = try await failure(server, key: .test(sign: { _ in throw Broken() }))
        #expect(error.code == .credentialsUnavailable && !error.mayBeUnderWay)
        let cause = "the proof failed with an error of type Broken"
        #expect(error.description == "The credentials are unavailable, so nothing was sent: \(cause).")
        let client = try OAuthClient.test(DPoPKey.test(sign: { _ in Data(count: 70) }), server)
        let other = await #expect(throws: DPoPError.self) { try await client.token(for: .jwtBearer("a")) }
        #expect(other?.code == .invalidSignature && server.facts.requests.isEmpty)
    }

    // RFC 9700 §4.9: proofs, nonces or the key in any text are a leak.
    @Test(arguments: [200, 400, 401, 503])
    func `a proof or a nonce that the server echoes is hidden`(status: Int) async throws {
        let key = try DPoPKey.test()
        _ = try key.nonce(in: ["DPoP-Nonce": "sent-nonce"], from: url("https://as.example"))
        let echo = Lock("")
        struct Echo: TokenTransport {
            let status: Int
            let echo: @Sendable (String) -> Void
            @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
                let proof = request.headers["DPoP"] ?? ""
                echo(proof)
                let parts = proof.split(separator: ".").joined(separator: " ")
                return TransportResponse(
                    status: status, headers: ["DPoP-Nonce": "next-nonce"],
                    body: Data(#"{"error":"no","error_description":"\#(proof) \#(parts) sent-nonce next-nonce"}"#.utf8))
            }
        }
        let client = try OAuthClient.test(key, Echo(status: status) { proof in echo.withLock { $0 = proof } })
        let error = try await #require(throws: OAuthError.self) { try await client.token(for: .jwtBearer("an-assertion")) }
        let shown = texts(error) + texts(error.serverDescription as Any)
        let parts = echo.withLock { $0 }.split(separator: ".").map(String.init)
        for secret in parts + ["sent-nonce", "next-nonce"] { #expect(!shown.contains(secret), "\(secret)") }
        #expect(error.serverDescription?.contains("[hidden]") == true)
    }

    @Test func `no error shows the nonce of an earlier refusal`() async throws {
        let refusal = #"{"error":"invalid_dpop_proof","error_description":"first-nonce is not second-nonce"}"#
        let server = NonceServer(script: [
            .refusal("use_dpop_nonce", nonce: "second-nonce"), TransportResponse(status: 400, body: Data(refusal.utf8)),
        ])
        let key = try DPoPKey.test()
        _ = try key.nonce(in: ["DPoP-Nonce": "first-nonce"], from: url("https://as.example"))
        let error = await #expect(throws: OAuthError.self) {
            try await OAuthClient.test(key, server).token(for: .refreshToken("r0"))
        }
        #expect(server.facts.requests.count == 2 && error?.serverDescription == "[hidden] is not [hidden]")
    }
}
