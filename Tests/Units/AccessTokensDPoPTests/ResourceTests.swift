import AccessTokens
import AccessTokensDPoP
import AccessTokensHTTP
import AccessTokensTesting
import DataLoading
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite(.timeLimit(.minutes(10)))
struct ResourceTests {
    func tokens(_ key: DPoPKey) -> TokenService { service(key.keyThumbprint) }

    func service(_ thumbprint: String?, type: String = "DPoP") -> TokenService {
        let numbers = Numbers()
        return TokenService(environment: .init(clock: ManualClock()), isRepeatable: true) { _ in
            AccessToken("token-\(numbers.next())", tokenType: type, keyThumbprint: thumbprint)
        }
    }

    final class Numbers: Sendable {
        private let count = Lock(0)
        func next() -> Int {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }

    func loader(_ api: BoundAPI, _ key: DPoPKey?, tokens: TokenService? = nil, thumbprint: String? = nil) throws -> DataLoader {
        let tokens = tokens ?? service(thumbprint ?? key?.keyThumbprint)
        return DataLoaderFactory(tokens: try OriginTokens(tokens, for: [api.url], proof: key)).makeLoader()
    }

    @Test func `a request whose nonce is refused is sent once more, and the next request uses that nonce`() async throws {
        let api = try BoundAPI(), loader = try loader(api, .test())
        let request = Request(
            url: api.url.appending(path: "a"), method: "PUT", query: [.init(name: "q", value: "1")],
            body: .data(Data("mine".utf8))
        )
        #expect(try await loader.perform(request).status == 200)
        #expect(try await loader.perform(Request(url: api.url.appending(path: "b"))).status == 200)
        #expect(api.facts.arrivals.count == 3 && api.facts.problems == [])
        #expect(api.facts.arrivals.map { $0.hasSuffix("mine") } == [true, true, false])
    }

    // RFC 9449 §4.3: few servers normalize what arrives. `SERVER` stands for host and port.
    @Test(arguments: [
        "SERVER", "SERVER?a=b", "SERVER/a/../b", "SERVER/a/./b/", "SERVER/a/..", "SERVER/a/.", "SERVER/../../x",
        "SERVER//a//../b",
        "SERVER/a/..?x=/../y", "SERVER/a/%2e%2e/b", "SERVER/%7e%41%2f%2F", "SERVER/a;b=c,d:@!$&'()*+", "SERVER/a b|ü[x]",
        "SERVER/a?b#c", "SERVER/a#c/../d", "SERVER/.a/..b/...", "CAPITALS/A",
        "SERVER/a/%2E%2e/b", "SERVER/a/.%2e/b", "SERVER/a/%2e.", "SERVER/a/%2e/b", "SERVER/%2e", "SERVER/a/../%2e%2e/.%2E/c%3f",
        "SERVER/%c3%a9", "SERVER/a;p=%2f?q=%2e%2e&r=%7e", "SERVER/a/%2e%2e%2fb", "SERVER/a/..%2fb", "SERVER/a/%252e%252e/b",
        "SERVER/a/..;/b", "SERVER///..//x", "SERVER/-._~%2d%2e%5f", "SERVER/a/b/%2E%2E/",
    ])
    func `a proof names the URL that is actually sent, also after a redirect`(text: String) async throws {
        let api = try BoundAPI(script: [1: "HTTP/1.1 307 No\r\nLocation: /r/../s\r\nContent-Length: 0\r\n\r\n"])
        let server = "http://127.0.0.1:\(try #require(api.url.port))"
        let address = text.replacing("SERVER", with: server).replacing(
            "CAPITALS", with: server.replacing("127.0.0.1", with: "LocalHost"))
        let target = url(address)
        let tokens = try OriginTokens(try tokens(.test()), for: [target], proof: DPoPKey.test())
        _ = try? await DataLoaderFactory(tokens: tokens).makeLoader().perform(Request(url: target, method: "PUT"))
        #expect(api.facts.arrivals.count >= 2)
        for arrival in api.facts.arrivals {
            let proof = try #require(SentProof(BoundAPI.header("DPoP", in: arrival)))
            let path = arrival.split(separator: " ")[1].prefix { $0 != "?" }
            #expect(proof["htu"] == "http://\(BoundAPI.header("Host", in: arrival) ?? "")\(path)")
        }
    }

    // RFC 9449 §8.2: the newest nonce counts.
    @Test func `43: a request whose nonce is refused is not sent again for a user who has signed out`() async throws {
        let answers = DispatchSemaphore(value: 0), key = try DPoPKey.test()
        let server = try LoopbackServer { _ in
            answers.wait()
            return .bytes(BoundAPI.refusal("use_dpop_nonce", "DPoP-Nonce: nonce-1\r\n"))
        }
        let service = TokenService { _ in throw ScriptedFailure() }
        await service.replace(with: AccessToken("ann", tokenType: "DPoP"))
        let loader = DataLoaderFactory(tokens: try OriginTokens(service, for: [server.url], proof: key)).makeLoader()
        let request = loader.start(Request(url: server.url, method: "POST", body: .data(Data("Ann's".utf8))))
        _ = await server.requests.first { _ in true }
        _ = await service.reset()
        await service.replace(with: AccessToken("bob", tokenType: "DPoP"))
        // One signal for each possible arrival.
        for _ in 1...2 { answers.signal() }
        let error = await #expect(throws: TokenServiceError.self) { try await request.response() }
        #expect(error?.code == .reset)
    }

    @Test func `a request redirected after its nonce was refused uses the nonce of the redirect`() async throws {
        let script = [
            1: BoundAPI.refusal("use_dpop_nonce", "DPoP-Nonce: one\r\n"),
            2: "HTTP/1.1 307 No\r\nLocation: /b\r\nDPoP-Nonce: two\r\nContent-Length: 0\r\n\r\n",
            3: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        ]
        let api = try BoundAPI(script: script)
        #expect(try await loader(api, .test()).perform(Request(url: api.url)).status == 200)
        #expect(api.facts.arrivals.map { SentProof(BoundAPI.header("DPoP", in: $0))?["nonce"] } == [nil, "one", "two"])
    }

    @Test func `a redirected request may be repeated for a nonce once more`() async throws {
        let script = [
            1: BoundAPI.refusal("use_dpop_nonce", "DPoP-Nonce: one\r\n"),
            2: "HTTP/1.1 307 No\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
            3: BoundAPI.refusal("use_dpop_nonce", "DPoP-Nonce: two\r\n"),
            4: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        ]
        let api = try BoundAPI(script: script)
        #expect(try await loader(api, .test()).perform(Request(url: api.url)).status == 200)
        #expect(api.facts.arrivals.map { SentProof(BoundAPI.header("DPoP", in: $0))?["nonce"] } == [nil, "one", "one", "two"])
    }

    @Test func `no error shows the nonce of an earlier refusal`() async throws {
        let script = [
            1: BoundAPI.refusal("use_dpop_nonce", "DPoP-Nonce: second-nonce\r\n"),
            2: BoundAPI.refusal("first-nonce second-nonce"),
        ]
        let api = try BoundAPI(script: script), key = try DPoPKey.test()
        _ = try key.nonce(in: ["DPoP-Nonce": "first-nonce"], from: api.url)
        let error = await #expect(throws: DataLoadingError.self) { try await loader(api, key).perform(Request(url: api.url)) }
        #expect(api.facts.arrivals.count == 2 && error?.error == "[hidden] [hidden]")
    }

    // Each request is repeated at most twice, and no proof is sent twice.
    @Test func `each of many requests under nonces that change every second costs at most two repetitions`() async throws {
        let api = try BoundAPI(), loader = try loader(api, .test()), count = Int.everyday(60, thorough: 1000)
        let refused = try await withThrowingTaskGroup { group in
            for number in 1...count {
                group.addTask {
                    do {
                        _ = try await loader.perform(Request(url: api.url.appending(path: "r\(number)")))
                        return 0
                    } catch let error as DataLoadingError where error.error == "use_dpop_nonce" {
                        return 1
                    }
                }
                if number % 20 == 0 { api.facts.clock.advance(by: .seconds(1)) }
            }
            return try await group.reduce(0, +)
        }
        // A nonce may end once more between a demand and the repetition; then the caller is told.
        let facts = api.facts
        #expect(facts.served.count == count - refused && facts.problems == [])
        for number in 1...count {
            let name = "/r\(number)", served = facts.served[name] ?? 0
            #expect(served <= 1 && 1...3 ~= served + (facts.refusals[name] ?? 0), "\(served) \(facts.refusals[name] ?? 0)")
        }
    }

    @Test(arguments: [
        BoundAPI.refusal("use_dpop_nonce"),
        BoundAPI.refusal("use_dpop_nonce", "DPoP-Nonce: \(String(repeating: "n", count: 8192))\r\n"),
        BoundAPI.refusal("use_dpop_nonce", "DPoP-Nonce: a\r\nDPoP-Nonce: b\r\n"),
    ])
    func `a demand for a nonce without a usable one is a clear error after one request`(answer: String) async throws {
        let api = try BoundAPI(script: [1: answer]), tokens = try tokens(.test())
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader(api, .test(), tokens: tokens).perform(Request(url: api.url))
        }
        #expect(error?.code == .unauthorized && error?.error == "use_dpop_nonce" && api.facts.arrivals.count == 1)
        #expect(error?.description.contains("nonce") == true && !texts(error as Any).contains("nnnnnn"), "\(error as Any)")
        #expect(tokens.cachedToken != nil)
    }

    @Test func `a server that demands a nonce again and again gets three requests`() async throws {
        let script = Dictionary(
            uniqueKeysWithValues: (1...4).map {
                ($0, BoundAPI.refusal("use_dpop_nonce", "DPoP-Nonce: n\($0)\r\n", status: $0 == 2 ? 400 : 401))
            })
        let api = try BoundAPI(script: script)
        let error = await #expect(throws: DataLoadingError.self) { try await loader(api, .test()).perform(Request(url: api.url)) }
        #expect(error?.description.hasSuffix("it refused the nonce that it had sent.") == true, "\(error as Any)")
        #expect(api.facts.arrivals.count == 3)
    }

    @Test func `a server that accepts only its newest nonce gets a request up to three times`() async throws {
        for (second, arrivals) in [("nonce-1", 3), ("n1", 2)] {
            let nonces = [1: "n1", 2: second]
            let api = try BoundAPI(script: nonces.mapValues { BoundAPI.refusal("use_dpop_nonce", "DPoP-Nonce: \($0)\r\n") })
            let response = try? await loader(api, .test()).perform(Request(url: api.url))
            // A nonce that the server has refused already isn't sent again.
            #expect(api.facts.arrivals.count == arrivals && response?.status == (arrivals == 3 ? 200 : nil))
        }
    }

    @Test func `a refused token is replaced, and its successor's proof may need a nonce, too`() async throws {
        let api = try BoundAPI(script: [1: BoundAPI.refusal("invalid_token")]), key = try DPoPKey.test()
        let tokens = tokens(key)
        #expect(try await loader(api, key, tokens: tokens).perform(Request(url: api.url)).status == 200)
        let sent = api.facts.arrivals.map { BoundAPI.header("Authorization", in: $0) }
        #expect(sent == ["DPoP token-1", "DPoP token-2", "DPoP token-2"])
        let hashes = api.facts.arrivals.map { SentProof(BoundAPI.header("DPoP", in: $0))?["ath"] }
        #expect(hashes[0] != hashes[1] && hashes[1] == hashes[2])
    }

    // RFC 9449 §7.1: a challenge for another scheme is meant for other clients.
    @Test func `an error for another scheme doesn't concern the bound token`() async throws {
        let answer =
            "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error=\"invalid_token\", DPoP error=\"invalid_dpop_proof\"\r\n"
            + "Date: Sun, 06 Nov 1994 07:49:37 GMT\r\nContent-Length: 0\r\n\r\n"
        let api = try BoundAPI(script: [1: answer])
        let key = try DPoPKey.test(wallClock: { Date(timeIntervalSince1970: 784_111_777) }), tokens = tokens(key)
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader(api, key, tokens: tokens).perform(Request(url: api.url))
        }
        #expect(error?.error == "invalid_dpop_proof" && api.facts.arrivals.count == 1 && tokens.cachedToken != nil)
        #expect(
            error?.description.hasSuffix(
                ": correct this machine's clock, or the server's: the proof was made at 1994-11-06T08:49:37Z, and the server's Date is "
                    + "1994-11-06T07:49:37Z.") == true, "\(error as Any)")
    }

    @Test func `a bound token without its key, or with another, is not sent`() async throws {
        let api = try BoundAPI()
        for (key, thumbprint) in [(nil, "t"), (try DPoPKey.test(), "another")] as [(DPoPKey?, String)] {
            let error = await #expect(throws: DataLoadingError.self) {
                try await loader(api, key, thumbprint: thumbprint).perform(Request(url: api.url))
            }
            #expect(error?.code == .unusableToken && api.facts.arrivals.isEmpty)
        }
    }

    @Test func `a Bearer token is sent as a Bearer token, also by a loader with a key`() async throws {
        let api = try BoundAPI(script: [1: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
        let tokens = service(nil, type: "bearer")
        #expect(try await loader(api, .test(), tokens: tokens).perform(Request(url: api.url)).status == 200)
        let arrival = try #require(api.facts.arrivals.first)
        #expect(BoundAPI.header("Authorization", in: arrival) == "Bearer token-1" && BoundAPI.header("DPoP", in: arrival) == nil)
    }

    @Test func `if signing fails, nothing is sent and no secret is shown`() async throws {
        struct Broken: Error { let secret = "the-pin" }
        let api = try BoundAPI()
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader(api, .test(sign: { _ in throw Broken() })).perform(Request(url: api.url))
        }
        #expect(error?.code == .proofUnavailable && api.facts.arrivals.isEmpty)
        #expect(
            error?.description
                == "There is no proof for the request, so nothing was sent: signing failed with an error of type Broken.")
        #expect(!texts(error as Any).contains("the-pin"))
    }

    /// A program's own proof, with any headers.
    struct OwnProof: TokenProof {
        let headers: [String: String]
        var keyThumbprint: String { "own" }

        func proof(method: String, url: URL, accessToken: String?, nonce: String?) async throws -> RequestProof {
            RequestProof(headers: headers, nonce: nil, issued: .now)
        }

        func nonce(in headers: [String: String], from url: URL) -> String? { nil }
    }

    func loader(_ api: BoundAPI, sending headers: [String: String]) throws -> DataLoader {
        let tokens = try OriginTokens(service("own"), for: [api.url], proof: OwnProof(headers: headers))
        return DataLoaderFactory(tokens: tokens).makeLoader()
    }

    @Test(arguments: [["DPoP": "a\r\nX-Other: b"], ["DPoP": "a\u{0}"], ["D PoP": "a"], ["": "a"], ["Content-length": "0"]])
    func `a proof with a header that can't be sent ends its request`(headers: [String: String]) async throws {
        let api = try BoundAPI()
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader(api, sending: headers).perform(Request(url: api.url))
        }
        #expect(error?.code == .proofUnavailable && api.facts.arrivals.isEmpty)
    }

    @Test func `a proof's header takes the place of the request's own, whatever case its name has`() async throws {
        let api = try BoundAPI(script: [1: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
        let request = Request(url: api.url, headers: ["dpop": "the request's", "X-Other": "b"])
        #expect(try await loader(api, sending: ["DPoP": "the proof's"]).perform(request).status == 200)
        let arrival = try #require(api.facts.arrivals.first)
        #expect(BoundAPI.header("DPoP", in: arrival) == "the proof's" && BoundAPI.header("X-Other", in: arrival) == "b")
        #expect(!arrival.contains("the request's"))
    }

    @Test func `if signing takes longer than ten seconds, nothing is sent`() async throws {
        let api = try BoundAPI(), clock = ManualClock()
        let key = try DPoPKey.test(
            clock: clock,
            sign: { _ in
                try await clock.sleep(for: .seconds(60))
                return Data(count: 64)
            })
        let loader = try loader(api, key), request = Task { try await loader.perform(Request(url: api.url)) }
        try await clock.waitForSleepers(2)
        clock.advance(by: .seconds(10))
        let error = await #expect(throws: DataLoadingError.self) { _ = try await request.value }
        #expect(error?.code == .proofUnavailable && (error?.underlying as? DPoPError)?.code == .signingTimedOut)
        #expect(api.facts.arrivals.isEmpty)
    }

    @Test func `no token, proof or nonce follows a redirect to another origin`() async throws {
        let other = try BoundAPI(script: [1: "HTTP/1.1 200 OK\r\nDPoP-Nonce: stolen\r\nContent-Length: 0\r\n\r\n"])
        let api = try BoundAPI(script: [
            1: "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nDPoP-Nonce: nonce-1\r\nContent-Length: 0\r\n\r\n",
            2: "HTTP/1.1 302 Found\r\nLocation: \(other.url)\r\nContent-Length: 0\r\n\r\n",
        ])
        #expect(try await loader(api, .test()).perform(Request(url: api.url)).status == 200)
        let proofs = api.facts.arrivals.map { SentProof(BoundAPI.header("DPoP", in: $0)) }
        #expect(proofs[0]?["htu"]?.hasSuffix("/") == true && proofs[1]?["htu"]?.hasSuffix("/elsewhere") == true)
        #expect(proofs[1]?["nonce"] == "nonce-1" && proofs[0]?["jti"] != proofs[1]?["jti"])
        let elsewhere = try #require(other.facts.arrivals.first)
        #expect(BoundAPI.header("DPoP", in: elsewhere) == nil && BoundAPI.header("Authorization", in: elsewhere) == nil)
    }
}
