import AccessTokens
import AccessTokensTesting
import DataLoading
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct AuthenticationTests {
    static func refusal(_ headers: String) -> String { "HTTP/1.1 401 No\r\n\(headers)Content-Length: 2\r\n\r\nno" }

    // RFC 6750 §3.1; the bare ones are sent by Glewlwyd and others for expired tokens, the last ones by gateways.
    @Test(arguments: [
        "WWW-Authenticate: Bearer realm=\"x\", error=\"invalid_token\"\r\n",
        "WWW-Authenticate: Bearer error=invalid_token\r\n",
        "WWW-Authenticate: Basic realm=\"a, Bearer error=x\", bearer realm=\"y\", ERROR=\"invalid_token\"\r\n",
        "WWW-Authenticate: Basic realm=\"x\"\r\nWWW-Authenticate: Bearer error=\"invalid_token\", error_description=\"it \\\"expired\\\"\"\r\n",
        "www-authenticate: Bearer\r\nWWW-Authenticate: Bearer error=\"invalid_token\"\r\n",
        "WWW-Authenticate: Bearer realm=\"x\"\r\n", "WWW-Authenticate:\r\n", "",
        "WWW-Authenticate: OAuth2 realm=\"x\" error=\"invalid_token\"\r\n", "WWW-Authenticate: Token error=\"expired\"\r\n",
        "WWW-Authenticate: DPoP error=\"invalid_token\"\r\n", "WWW-Authenticate: Basic realm=\"x\"\r\n",
        "WWW-Authenticate: Bearer error=\"invalid_request\", Token error=\"invalid_token\"\r\n",
        "WWW-Authenticate: Basic realm=\"Bearer error=\\\"invalid_request\\\"\"\r\n",
    ])
    func `a refused token is replaced, and the request sent once more with the new one`(headers: String) async throws {
        let server = try ResourceServer(refusal: Self.refusal(headers))
        let loader = try server.loader()
        server.authorizationServer.revoke(try await server.tokens.retrieveToken())
        let request = Request(url: server.url("movies"), method: "PUT", body: .data(Data("mine".utf8)))
        #expect(try await loader.perform(request).status == 200)
        #expect(server.arrivals.all.map(\.token) == ["access-1", "access-2"])
        #expect(server.arrivals.all.map(\.body) == ["mine", "mine"])
        #expect(server.tokens.cachedToken?.value == "access-2")
    }

    @Test(arguments: [
        "WWW-Authenticate: Bearer error=\"invalid_request\"\r\n", "WWW-Authenticate: DPoP error=\"invalid_dpop_proof\"\r\n",
        "WWW-Authenticate: Bearer, Bearer error=\"invalid_request\"\r\n",
        "WWW-Authenticate: Basic realm=\"x\", Bearer error=\"invalid_request\"\r\n",
    ])
    func `a 401 for another reason leaves the token alone`(headers: String) async throws {
        let server = try ResourceServer(refusal: Self.refusal(headers))
        server.authorizationServer.revoke(try await server.tokens.retrieveToken())
        let error = await #expect(throws: DataLoadingError.self) {
            try await server.loader().perform(Request(url: server.url))
        }
        #expect(error?.code == .unauthorized && error?.response?.status == 401)
        #expect((error as (any Error)?)?.localizedDescription == error?.description)
        #expect(server.arrivals.all.count == 1 && server.authorizationServer.tokensIssued == 1)
        #expect(server.tokens.cachedToken != nil)
    }

    @Test(arguments: [2, 10])
    func `49: with a server that refuses requests at random and revokes nothing, only requests refused twice fail`(
        percent: Int
    ) async throws {
        let random = Lock(SplitMix64(seed: 49))
        let server = try ResourceServer { arrival in
            let isRefused = random.withLock { Int.random(in: 0..<100, using: &$0) < percent }
            return isRefused ? .bytes(ResourceServer.invalidToken) : ResourceServer.ok("ok")
        }
        let loader = try server.loader(), url = server.url
        let count = await withTaskGroup(of: Int.self) { group in
            for _ in 1...8 {
                group.addTask {
                    var failures = 0
                    for _ in 1...100 where await (try? loader.perform(Request(url: url))) == nil { failures += 1 }
                    return failures
                }
            }
            return await group.reduce(0, +)
        }
        let rate = Double(percent) / 100, expected = rate * rate * 800
        #expect(Double(count) <= expected + 4 * expected.squareRoot() + 1, "\(count) of 800")
        // All within the same 30 s of the service's clock.
        #expect(server.authorizationServer.tokensIssued <= 6)
    }

    @Test func `a server that refuses the new token too gets no third request, and its answer is the error`() async throws {
        let server = try ResourceServer()
        let tokens = TokenService(environment: .init(clock: ManualClock())) { _ in AccessToken("made-up-\(UUID())") }
        let factory = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [server.url]))
        let error = await #expect(throws: DataLoadingError.self) {
            try await factory.makeLoader().perform(Request(url: server.url))
        }
        #expect(error?.code == .unauthorized && error?.error == "invalid_token")
        #expect(
            error?.description
                == "The server refused a new token as well (status 401 from 127.0.0.1, invalid_token): check the audience and the scope "
                + "that it expects."
        )
        #expect(server.arrivals.all.count == 2)
        let shown = "\(String(describing: error)) \(String(reflecting: error))"
        #expect(!shown.contains("made-up"))
    }

    // Museum 11: N concurrent 401s start N refreshes.
    @Test func `a hundred requests refused at once cause one load`() async throws {
        let server = try ResourceServer(refusals: 3)
        let factory = try server.factory()
        server.authorizationServer.revoke(try await server.tokens.retrieveToken())
        try await withThrowingTaskGroup { group in
            for number in 1...100 {
                group.addTask {
                    let response = try await factory.makeLoader().perform(Request(url: server.url("\(number)")))
                    #expect(String(decoding: response.body, as: UTF8.self) == "/\(number)")
                }
            }
            try await group.waitForAll()
        }
        #expect(server.authorizationServer.loadsStarted == 2)
        #expect(server.arrivals.all.count { $0.token == "access-1" } >= 3)
    }

    // Museum 10: a late 401 for the old token throws the fresh one away.
    @Test func `a refusal that arrives late costs no load`() async throws {
        let gate = Gate()
        let server = try ResourceServer { _ in ResourceServer.ok("") }
        let slow = try LoopbackServer { text in
            gate.wait()
            return text.contains("access-1")
                ? .bytes(ResourceServer.invalidToken) : .bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        }
        let factory = try server.factory(origins: [server.url, slow.url])
        let loader = factory.makeLoader()
        let late = loader.start(Request(url: slow.url))
        _ = await slow.requests.first { _ in true }
        server.authorizationServer.revoke(try #require(server.tokens.cachedToken))
        #expect(try await loader.perform(Request(url: server.url)).status == 200)
        gate.open()
        #expect(try await late.response().status == 200)
        #expect(server.authorizationServer.loadsStarted == 2 && server.tokens.cachedToken?.value == "access-2")
    }

    // RFC 6750 §3.1: a new token wouldn't help.
    @Test func `an error for an insufficient scope names what is missing, and causes no load`() async throws {
        let server = try ResourceServer { _ in
            ResourceServer.status(
                403, "WWW-Authenticate: Basic realm=\"x\", Bearer error=\"insufficient_scope\", scope=\"movies.write\"\r\n")
        }
        let error = await #expect(throws: DataLoadingError.self) {
            try await server.loader().perform(Request(url: server.url))
        }
        #expect(error?.code == .insufficientScope && error?.scope == "movies.write")
        #expect(error?.description.contains("ask for the scope movies.write") == true)
        #expect(server.arrivals.all.count == 1 && server.authorizationServer.loadsStarted == 1)
    }

    // RFC 9470; RFC 6750 has the second one with a 403.
    @Test(arguments: [
        ("insufficient_user_authentication", "requires a newer or stronger sign-in of the user"),
        ("insufficient_scope", "refused the token for its scope"),
    ])
    func `a 401 that wants more than a valid token is no other kind of authentication`(code: String, words: String) async throws {
        let server = try ResourceServer { _ in
            ResourceServer.status(401, "WWW-Authenticate: Bearer error=\"\(code)\", acr_values=\"a\", scope=\"b\"\r\n")
        }
        let error = await #expect(throws: DataLoadingError.self) {
            try await server.loader().perform(Request(url: server.url))
        }
        #expect(error?.code == .unauthorized && error?.description.contains(words) == true)
        #expect(server.arrivals.all.count == 1 && server.authorizationServer.loadsStarted == 1)
    }

    @Test func `an error shows what the server says of a token, without the token`() async throws {
        let server = try ResourceServer { arrival in
            let token = arrival.token ?? ""
            return ResourceServer.status(
                403, "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"\(token) x\"\r\n", body: token)
        }
        let error = try #require(
            await #expect(throws: DataLoadingError.self) { try await server.loader().perform(Request(url: server.url)) })
        var dumped = ""
        dump(error, to: &dumped)
        #expect(error.scope == "[hidden] x")
        #expect(!(dumped + "\(error)" + String(reflecting: error)).contains("access-1"))
    }

    @Test func `a request whose body can't be sent twice gets the 401 with the reason, and the next one has a new token`()
        async throws
    {
        let server = try ResourceServer()
        server.authorizationServer.revoke(try await server.tokens.retrieveToken())
        let loader = try server.loader()
        let body = Request.Body.stream(isReplayable: false) { InputStream(data: Data("once".utf8)) }
        let request = Request(url: server.url, method: "POST", body: body)
        let error = await #expect(throws: DataLoadingError.self) { try await loader.perform(request) }
        #expect(error?.code == .bodyNotReplayable && error?.response?.status == 401)
        #expect(error?.description.contains("can't be sent again") == true)
        #expect(server.arrivals.all.count == 1)
        #expect(try await loader.perform(request).status == 200)
        #expect(server.arrivals.all.last?.token == "access-2")
    }

    @Test func `a stream that can be opened again is sent twice, whole`() async throws {
        let server = try ResourceServer()
        server.authorizationServer.revoke(try await server.tokens.retrieveToken())
        let bytes = Data(repeating: UInt8(ascii: "x"), count: 200_000)
        let body = Request.Body.stream(isReplayable: true) { InputStream(data: bytes) }
        let response = try await server.loader().perform(Request(url: server.url, method: "POST", body: body))
        #expect(response.status == 200)
        #expect(server.arrivals.all.map { $0.body.count { $0 == "x" } } == [200_000, 200_000])
    }

    @Test func `a request with an Authorization of its own gets no token, and its 401 drops none`() async throws {
        let server = try ResourceServer()
        let request = Request(url: server.url, headers: ["authorization": "Basic eA=="])
        let error = await #expect(throws: DataLoadingError.self) { try await server.loader().perform(request) }
        #expect(error?.code == .unauthorized)
        #expect(server.arrivals.all.map { $0.header("Authorization") } == ["Basic eA=="])
        #expect(server.authorizationServer.loadsStarted == 0)
    }

    @Test func `if there is no token, nothing is sent and the caller gets the service's own error`() async throws {
        let server = try ResourceServer()
        server.authorizationServer.failNext(with: ScriptedFailure.grantRefused)
        let error = await #expect(throws: TokenServiceError.self) {
            try await server.loader().perform(Request(url: server.url))
        }
        #expect(error?.remedy == .signIn)
        #expect(server.arrivals.all.isEmpty)
    }

    // RFC 6749 §7.1; RFC 6750 §2.1.
    @Test(arguments: [
        AccessToken("secret", tokenType: "DPoP"), AccessToken("secret\r\nX-Mark: y"), AccessToken("secret y"),
        AccessToken("secret\u{e9}"),
    ])
    func `a token that the header can't carry is not sent`(token: AccessToken) async throws {
        let server = try ResourceServer()
        let factory = DataLoaderFactory(
            tokens: try OriginTokens(TokenService(environment: .init(clock: ManualClock())) { _ in token }, for: [server.url]))
        let error = await #expect(throws: DataLoadingError.self) {
            try await factory.makeLoader().perform(Request(url: server.url))
        }
        #expect(error?.code == .unusableToken && error?.description.contains("secret") == false)
        #expect(server.arrivals.all.isEmpty)
    }

    @Test func `49: a server that refuses every token ends requests with the time of the next load; another server's go on`()
        async throws
    {
        let refusing = try LoopbackServer { _ in .bytes(ResourceServer.invalidToken) }
        let fine = try LoopbackServer { _ in ResourceServer.ok("fine") }, loads = Lock(0)
        let tokens = TokenService(environment: .init(clock: ManualClock())) { _ in
            let number = loads.withLock { loads in
                loads += 1
                return loads
            }
            return AccessToken("access-\(number)", lifetime: .seconds(3600))
        }
        let loader = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [refusing.url, fine.url])).makeLoader()
        var told = 0
        for _ in 1...8 {
            let error = await #expect(throws: (any Error).self) { try await loader.perform(Request(url: refusing.url)) }
            if let error = error as? TokenServiceError {
                #expect(error.code == .tooManyInvalidations && error.retryAt != nil)
                told += 1
            } else {
                #expect((error as? DataLoadingError)?.code == .unauthorized)
            }
            #expect(try await loader.perform(Request(url: fine.url)).status == 200)
        }
        let count = loads.withLock { $0 }
        #expect(told >= 5 && count == 6)
    }

    @Test(arguments: [true, false])
    func `the wait for a token counts toward the request's time limit`(isSecond: Bool) async throws {
        let server = try LoopbackServer { _ in .bytes(ResourceServer.invalidToken) }
        let clock = ManualClock(), loads = Lock(0)
        let tokens = TokenService(environment: .init(clock: clock)) { _ in
            let isFirst = loads.withLock { loads in
                loads += 1
                return loads == 1
            }
            if !isFirst || !isSecond { try await clock.sleep(for: .seconds(3600)) }
            return AccessToken("access", lifetime: .seconds(7200))
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForResource = 20
        let factory = DataLoaderFactory(
            session: URLSession(configuration: configuration), tokens: try OriginTokens(tokens, for: [server.url]))
        let loader = factory.makeLoader(), url = server.url
        let request = Task { try await loader.perform(Request(url: url)) }
        // The load sleeps, and either the request has its limit, or it finds that its time is over.
        while loads.withLock({ $0 }) < (isSecond ? 2 : 1) { await Task.yield() }
        clock.advance(by: .seconds(20))
        let error = await #expect(throws: DataLoadingError.self) { try await request.value }
        #expect(error?.code == .timedOut)
    }
}
