import AccessTokens
import AccessTokensHTTP
import AccessTokensTesting
import Foundation
import LoopbackServers
import Testing
import TokenServiceConcurrency

@testable import DataLoading

@Suite(.timeLimit(.minutes(10)))
struct StepUpTests {
    let clock = ManualClock()
    let discarded = Discarded()

    final class Discarded: Sendable {
        private let tokens = Lock<[String]>([])
        var all: [String] { tokens.withLock { $0 } }
        func append(_ token: String) { tokens.withLock { $0.append(token) } }
    }

    func service(_ token: AccessToken = ScopedServer.token("read")) async -> TokenService {
        let service = TokenService(
            environment: .init(clock: clock), onDiscard: { [discarded] in discarded.append($0.token.value) }
        ) { _ in throw ScriptedFailure() }
        await service.replace(with: token)
        return service
    }

    private func loader(_ server: ScopedServer, _ service: TokenService, _ stepUp: StepUp?) throws -> DataLoader {
        DataLoaderFactory(tokens: try OriginTokens(service, for: [server.url], stepUp: stepUp)).makeLoader()
    }

    @Test func `a 403 asks once for the token's scopes and the missing one, and the request is sent again`() async throws {
        let server = try ScopedServer(), service = await service(), asked = ScopedServer.Log()
        let stepUp = StepUp(scope: "openid") { scope, token in
            asked.append("\(scope) instead of \(token.value)")
            return ScopedServer.token(scope)
        }
        let loader = try loader(server, service, stepUp)
        #expect(try await loader.perform(Request(url: server.url.appending(path: "a"))).status == 200)
        #expect(try await loader.perform(Request(url: server.url.appending(path: "b"))).status == 200)
        #expect(asked.all == ["openid read a instead of t.read", "openid read a b instead of t.openid.read.a"])
        #expect(
            server.log.all == ["a with t.read", "a with t.openid.read.a", "b with t.openid.read.a", "b with t.openid.read.a.b"])
        #expect(stepUp.scope == "openid read a b" && service.cachedToken?.value == "t.openid.read.a.b")
    }

    // MCP's SEP-2350: two requests that step up at once took each other's scopes away, for ever.
    @Test(arguments: [true, false])
    func `48: requests that step up at once gain all their scopes, each once`(says: Bool) async throws {
        let server = try ScopedServer(), service = await service(ScopedServer.token("read", says: says)),
            asked = ScopedServer.Log()
        let stepUp = StepUp(scope: "read") { scope, _ in
            asked.append(scope)
            return ScopedServer.token(scope, says: says)
        }
        let loader = try loader(server, service, stepUp)
        try await withThrowingTaskGroup { group in
            for name in ["a", "b", "c", "d"] {
                for _ in 1...5 {
                    group.addTask { try await loader.perform(Request(url: server.url.appending(path: name))).status }
                }
            }
            for try await status in group { #expect(status == 200) }
        }
        let scopes = Set(service.cachedToken?.value.split(separator: ".").dropFirst().map(String.init) ?? [])
        #expect(scopes == ["read", "a", "b", "c", "d"])
        if says { #expect(asked.all.count == 4) }
        #expect(Set(asked.all.map { $0.split(separator: " ").count }).count == asked.all.count || !says)
    }

    @Test func `a step-up token with fewer scopes that is refused is given up, and the current token stays`() async throws {
        let server = try ScopedServer(), service = await service(ScopedServer.token("read write"))
        for brought in ["b", "read b"] {
            let error = await #expect(throws: DataLoadingError.self) {
                try await loader(server, service, StepUp { _, _ in ScopedServer.token(brought) })
                    .perform(Request(url: server.url.appending(path: "a")))
            }
            #expect(error?.code == .insufficientScope && error?.scope == "a")
            #expect(service.cachedToken?.value == "t.read.write")
        }
        await discardedCount(2)
        #expect(discarded.all.sorted() == ["t.b", "t.read.b"])
    }

    /// How servers list what a token has: the current one, and the step-up's for the scope `a`.
    static let spellings: [(current: String?, asked: String, brought: String?)] = [
        ("read", "read a", "read a"), ("read", "read a", "read,a"), ("Read", "Read a", "READ A"),
        ("read,write", "read write a", "a,write,read"),
        // Entra leaves out `offline_access`.
        ("read", "read a", "read"), ("read offline_access", "read offline_access a", "read a"),
        // Google renames `email`, Graph adds its URL, and a broader scope may stand for the one that was asked for.
        ("openid https://example.com/email", "openid https://example.com/email a", "openid email a"),
        ("https://graph.example.com/read", "https://graph.example.com/read a", "read a"),
        ("Mail.Read", "Mail.Read a", "Mail.ReadWrite"),
        (nil, "a", "A"),
    ]

    @Test(arguments: spellings.indices)
    func `48: if a server lists scopes in words of its own, the user is asked once and the requests succeed`(index: Int)
        async throws
    {
        let (current, asks, brought) = Self.spellings[index]
        let server = try ScopedServer(), asked = ScopedServer.Log()
        let service = await service(AccessToken("t.read", lifetime: .seconds(3600), scope: current, refreshToken: "r"))
        let stepUp = StepUp { scope, _ in
            asked.append(scope)
            return AccessToken("t.read.a", lifetime: .seconds(3600), scope: brought, refreshToken: "r-a")
        }
        let loader = try loader(server, service, stepUp)
        try await withThrowingTaskGroup { group in
            for _ in 1...4 { group.addTask { try await loader.perform(Request(url: server.url.appending(path: "a"))).status } }
            for try await status in group { #expect(status == 200) }
        }
        #expect(try await loader.perform(Request(url: server.url.appending(path: "a"))).status == 200)
        #expect(asked.all == [asks] && service.cachedToken?.value == "t.read.a")
        await discardedCount(1)
        #expect(discarded.all == ["t.read"])
    }

    @Test(arguments: ["read", "read a", "b"])
    func `48: a step-up that did not help is remembered, and the user is not asked again in this session`(brought: String)
        async throws
    {
        let server = try ScopedServer(), service = await service(), asked = ScopedServer.Log()
        let stepUp = StepUp { scope, _ in
            asked.append(scope)
            let number = asked.all.count
            return AccessToken("t.read.\(number)", lifetime: .seconds(3600), scope: brought, refreshToken: "r\(number)")
        }
        let loader = try loader(server, service, stepUp)
        await withTaskGroup { group in
            for _ in 1...4 {
                group.addTask {
                    let error = await #expect(throws: DataLoadingError.self) {
                        try await loader.perform(Request(url: server.url.appending(path: "a")))
                    }
                    #expect(error?.code == .insufficientScope)
                }
            }
        }
        _ = try? await loader.perform(Request(url: server.url.appending(path: "a")))
        #expect(asked.all == ["read a"])
        // Another scope is another question, and does not bring the first one back.
        _ = try? await loader.perform(Request(url: server.url.appending(path: "c")))
        _ = try? await loader.perform(Request(url: server.url.appending(path: "a")))
        #expect(asked.all.count == 2)
        await service.replace(with: ScopedServer.token("read"))
        _ = try? await loader.perform(Request(url: server.url.appending(path: "a")))
        #expect(asked.all.count == 3, "a new sign-in begins anew")
    }

    @Test func `48: a step-up token that lists fewer scopes than the current one is given up if the server doesn't answer`()
        async throws
    {
        let server = try ScopedServer(), service = await service(ScopedServer.token("read write"))
        let stepUp = StepUp { _, _ in
            server.silence.append("from now on")
            return ScopedServer.token("a")
        }
        await #expect(throws: DataLoadingError.self) {
            try await loader(server, service, stepUp).perform(Request(url: server.url.appending(path: "a")))
        }
        await discardedCount(1)
        #expect(discarded.all == ["t.a"] && service.cachedToken?.value == "t.read.write")
    }

    @Test func `a step-up token with fewer scopes is given up, even if the current token was refused meanwhile`() async throws {
        let server = try ScopedServer(), good = ScopedServer.token("read write"), service = await service(good)
        let stepUp = StepUp { _, _ in
            await service.invalidate(good)
            return ScopedServer.token("a")
        }
        // The next token comes with the grant, which the loader doesn't get: this one fails.
        await #expect(throws: TokenServiceError.self) {
            try await loader(server, service, stepUp).perform(Request(url: server.url.appending(path: "c")))
        }
        await discardedCount(1)
        #expect(discarded.all == ["t.a"] && service.cachedToken == nil)
    }

    @Test func `a step-up doesn't replace a grant that the program installed meanwhile, even if its token is refused`()
        async throws
    {
        let server = try ScopedServer(), service = await service()
        let stepUp = StepUp { scope, _ in
            let installed = ScopedServer.token("read z")
            await service.replace(with: installed)
            await service.invalidate(installed)
            return ScopedServer.token(scope)
        }
        await #expect(throws: TokenServiceError.self) {
            try await loader(server, service, stepUp).perform(Request(url: server.url.appending(path: "a")))
        }
        await discardedCount(2)
        #expect(discarded.all.sorted() == ["t.read", "t.read.a"] && service.cachedToken == nil)
    }

    @Test func `a step-up token that no request can carry is given up, and the current token stays`() async throws {
        let server = try ScopedServer(), service = await service()
        let useless = [
            AccessToken("bound", tokenType: "DPoP", scope: "read a", refreshToken: "1", keyThumbprint: "another"),
            AccessToken("mac", tokenType: "mac", scope: "read a", refreshToken: "2"),
            AccessToken("two\nlines", scope: "read a", refreshToken: "3"),
        ]
        for brought in useless {
            let error = await #expect(throws: DataLoadingError.self) {
                try await loader(server, service, StepUp { _, _ in brought })
                    .perform(Request(url: server.url.appending(path: "a")))
            }
            #expect(error?.code == .unusableToken && service.cachedToken?.value == "t.read")
        }
        await discardedCount(3)
        #expect(discarded.all.sorted() == ["bound", "mac", "two\nlines"])
    }

    @Test func `a step-up token is given up after a sign-out, not installed`() async throws {
        let server = try ScopedServer(), service = await service()
        let stepUp = StepUp { scope, _ in
            _ = await service.reset()
            return ScopedServer.token(scope)
        }
        let error = await #expect(throws: TokenServiceError.self) {
            try await loader(server, service, stepUp).perform(Request(url: server.url.appending(path: "a")))
        }
        #expect(error?.code == .reset && service.cachedToken == nil)
        await discardedCount(2)
        #expect(discarded.all.sorted() == ["t.read", "t.read.a"] && server.log.all == ["a with t.read"])
    }

    @Test func `a sign-out while a step-up token is saved ends the request, and the next user gets none of its scopes`()
        async throws
    {
        let server = try ScopedServer(), store = ScriptedStore()
        let service = TokenService(store: store, environment: .init(clock: clock)) { _ in throw ScriptedFailure() }
        await service.replace(with: ScopedServer.token("read", says: false))
        let stepUp = StepUp(scope: "read") { scope, _ in
            store.hold()
            return ScopedServer.token(scope, says: false)
        }
        let loader = try loader(server, service, stepUp)
        let request = Task { try await loader.perform(Request(url: server.url.appending(path: "a"))) }
        while store.log.last != "save t.read.a" { await Task.yield() }
        let generation = service.currentGeneration
        let signOut = Task { await service.reset() }
        while service.currentGeneration == generation { await Task.yield() }
        store.release()
        let error = await #expect(throws: TokenServiceError.self) { try await request.value }
        #expect(error?.code == .reset && server.log.all == ["a with t.read"] && stepUp.scope == "read")
        _ = await signOut.value
    }

    @Test func `a step-up doesn't replace a token that the program installed meanwhile, if that has other scopes`() async throws {
        let server = try ScopedServer(), service = await service()
        let stepUp = StepUp { scope, _ in
            await service.replace(with: ScopedServer.token("read a z"))
            return ScopedServer.token(scope)
        }
        #expect(try await loader(server, service, stepUp).perform(Request(url: server.url.appending(path: "a"))).status == 200)
        #expect(service.cachedToken?.value == "t.read.a.z" && server.log.all.last == "a with t.read.a.z")
    }

    @Test func `a request that needs a step-up fails if the step-up fails or there is none`() async throws {
        struct Declined: Error { let secret = "the-pin" }
        let server = try ScopedServer(), service = await service()
        let request = Request(url: server.url.appending(path: "a"))
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader(server, service, StepUp { _, _ in throw Declined() }).perform(request)
        }
        #expect(error?.code == .insufficientScope && error?.underlying is Declined)
        #expect(error?.description.hasSuffix(": the step-up failed.") == true && error?.description.contains("the-pin") == false)
        let plain = await #expect(throws: DataLoadingError.self) { try await loader(server, service, nil).perform(request) }
        #expect(plain?.code == .insufficientScope && service.cachedToken?.value == "t.read")
    }

    @Test func `a server that refuses every scope gets two requests`() async throws {
        let server = try ScopedServer(refusal: "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"more\"\r\n")
        let service = await service()
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader(server, service, StepUp { scope, _ in ScopedServer.token(scope) })
                .perform(Request(url: server.url.appending(path: "a")))
        }
        #expect(error?.code == .insufficientScope && server.log.all.count == 2)
    }

    @Test(arguments: [
        "", "WWW-Authenticate: Bearer error=\"insufficient_scope\"\r\n", "WWW-Authenticate: Bearer scope=\"a\"\r\n",
        "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"a\u{1}b\"\r\n",
        "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"\(String(repeating: "a", count: 5000))\"\r\n",
        "WWW-Authenticate: DPoP error=\"insufficient_scope\", scope=\"a\"\r\n",
    ])
    func `a 403 without a scope to ask for causes no step-up`(refusal: String) async throws {
        let server = try ScopedServer(refusal: refusal), service = await service()
        let stepUp = StepUp { _, _ in
            Issue.record("asked")
            throw CancellationError()
        }
        await #expect(throws: DataLoadingError.self) {
            try await loader(server, service, stepUp).perform(Request(url: server.url.appending(path: "a")))
        }
        #expect(server.log.all.count == 1)
    }

    // RFC 9728 §5.1; several headers arrive as one.
    @Test(arguments: [
        "WWW-Authenticate: Bearer resource_metadata=\"https://api.example/x?y=1\"\r\n",
        "WWW-Authenticate: Basic realm=\"a, Bearer resource_metadata=b\"\r\n"
            + "WWW-Authenticate: Bearer error=\"invalid_token\", resource_metadata=\"https://api.example/x?y=1\"\r\n",
    ])
    func `the error of a 401 has the URL of the resource's metadata`(headers: String) async throws {
        let server = try LoopbackServer(answering: "HTTP/1.1 401 No\r\n\(headers)Content-Length: 0\r\n\r\n")
        let error = await #expect(throws: DataLoadingError.self) {
            try await DataLoaderFactory().makeLoader().perform(Request(url: server.url))
        }
        #expect(error?.code == .unauthorized && error?.resourceMetadata?.absoluteString == "https://api.example/x?y=1")
    }

    // MCP's Python SDK (2.3.0) answers like this.
    @Test(arguments: [true, false], ["", ", scope=\"\"", ", scope=\"write\""])
    func `a server that refuses every scope, or names none, doesn't cause the user to be asked twice`(says: Bool, named: String)
        async throws
    {
        let server = try ScopedServer(refusal: "WWW-Authenticate: Bearer error=\"insufficient_scope\"\(named)\r\n")
        let service = await service(ScopedServer.token("read", says: says)), asked = ScopedServer.Log()
        let stepUp = StepUp(scope: "read", whenUnnamed: "write") { scope, _ in
            asked.append(scope)
            return ScopedServer.token(scope, says: says)
        }
        let loader = try loader(server, service, stepUp)
        #expect(try await loader.perform(Request(url: server.url.appending(path: "write"))).status == 200)
        for _ in 1...2 {
            let error = await #expect(throws: DataLoadingError.self) {
                try await loader.perform(Request(url: server.url.appending(path: "more")))
            }
            #expect(error?.code == .insufficientScope)
        }
        #expect(asked.all == ["read write"])
    }

    @Test func `scopes accumulate in order, each once, and another sign-in begins anew`() {
        var scopes = StepUpScopes(base: "a b")
        #expect(scopes.text == "a b")
        #expect(scopes.asking(for: "c a", beyond: "b d", generation: 1) == "a b d c")
        scopes.gain("a b c", by: AccessToken("t"), generation: 2)
        #expect(scopes.asking(for: "e", beyond: nil, generation: 2) == "a b c e" && scopes.text == "a b c")
        #expect(scopes.asking(for: "e", beyond: nil, generation: 3) == "a b e")
    }

    @Test func `a scope that a step-up asked for in vain isn't asked for together with the next one`() async throws {
        let server = try ScopedServer(), service = await service(), asked = ScopedServer.Log()
        let stepUp = StepUp { scope, _ in
            asked.append(scope)
            return AccessToken("t.read.\(asked.all.count)", lifetime: .seconds(3600), scope: "read", refreshToken: "r")
        }
        let loader = try loader(server, service, stepUp)
        for name in ["a", "c"] {
            _ = try? await loader.perform(Request(url: server.url.appending(path: name)))
        }
        #expect(asked.all == ["read a", "read c"] && stepUp.scope == "read")
    }

    @Test func `however many scopes step-ups gain, a request for them stays short enough for a URL`() {
        var scopes = StepUpScopes(base: "a")
        for number in 1...1_000 {
            let asked = scopes.asking(for: "scope-\(number)", beyond: "read", generation: 1)
            #expect(asked.utf8.count <= 4096 && asked.hasPrefix("a read") && asked.hasSuffix("scope-\(number)"))
            scopes.gain(asked, by: AccessToken("t"), generation: 1)
        }
        #expect(scopes.text.contains("scope-999 scope-1000"), "the oldest are left out")
    }

    @Test func `a request waits for another's step-up no longer than its own limit`() async throws {
        let server = try ScopedServer(), service = await service(), gate = SingleResult<Void>(), asked = ScopedServer.Log()
        let stepUp = StepUp { scope, _ in
            asked.append(scope)
            try await gate.value()
            return ScopedServer.token(scope)
        }
        let session = try #require(
            try OriginTokens(service, for: [server.url], stepUp: stepUp)
                .session(for: Message(Request(url: server.url.appending(path: "a")))))
        let narrow = try await session.token()
        let gain: @Sendable (Int) async throws -> StepUp.Gain = { seconds in
            var session = session
            session.deadline = .seconds(seconds)
            return try await stepUp.gain(.scope("a"), insteadOf: narrow, in: session) { _ in throw ScriptedFailure() }
        }
        let first = Task { try await gain(60) }
        while asked.all.isEmpty { await Task.yield() }
        let others = [60, 120, 180].map { seconds in Task { try await gain(seconds) } }
        try await clock.waitForSleepers(3)
        clock.advance(by: .seconds(120))
        for other in others.prefix(2) {
            let error = await #expect(throws: DataLoadingError.self) { try await other.value }
            #expect(error?.code == .timedOut)
        }
        gate.complete(with: .success(()))
        for task in [first, others[2]] {
            guard case .token(let token) = try await task.value else {
                Issue.record("there is no token")
                continue
            }
            #expect(token.value == "t.read.a")
        }
        #expect(asked.all == ["read a"])
    }

    /// Waits until this many tokens were handed over for revocation.
    private func discardedCount(_ count: Int) async {
        while discarded.all.count < count { await Task.yield() }
    }

    // Authlib's `ResourceProtector` sends no challenge.
    @Test(arguments: [true, false])
    func `a 403 whose body says insufficient_scope causes a step-up only if the program allows it`(readsBody: Bool) async throws {
        let server = try ResourceServer { arrival in
            arrival.path == "/other"
                ? ResourceServer.status(403, body: #"{"error":"access_denied","scope":"write"}"#)
                : ResourceServer.status(403, body: #"{"error":"insufficient_scope","scope":"write"}"#)
        }
        let asked = Lock<[String]>([])
        let stepUp = StepUp(scope: "read", readsBody: readsBody) { scope, _ in
            asked.withLock { $0.append(scope) }
            return server.authorizationServer.signIn()
        }
        let loader = DataLoaderFactory(tokens: try OriginTokens(server.tokens, for: [server.url], stepUp: stepUp)).makeLoader()
        for path in ["other", "movies", "movies"] {
            let error = await #expect(throws: DataLoadingError.self) {
                try await loader.perform(Request(url: server.url(path)))
            }
            #expect(error?.response?.status == 403)
        }
        // It has brought nothing, so the user isn't asked again.
        #expect(asked.withLock { $0 } == (readsBody ? ["read write"] : []))
        #expect(server.arrivals.all.count == (readsBody ? 4 : 3))
    }

    // MARK: Claims

    /// A server that answers with a challenge unless the token is the one that a stronger sign-in has brought.
    private func demandingServer(_ challenge: String) throws -> ScopedServer {
        try ScopedServer(refusal: "WWW-Authenticate: Bearer \(challenge)\r\n", status: 401)
    }

    private static let strong = AccessToken("t.read.strong", lifetime: .seconds(3600), scope: "read", refreshToken: "r-strong")

    // RFC 9470 §3, and Azure's continuous access evaluation.
    @Test(arguments: [
        #"error="insufficient_user_authentication", acr_values="phr phrh", max_age="5""#,
        #"realm="", error="insufficient_claims", claims="eyJhY2Nlc3NfdG9rZW4iOnt9fQ==""#,
    ])
    func `a 401 that demands another sign-in reaches the closure with its parameters, once for all requests`(
        challenge: String
    ) async throws {
        let server = try demandingServer(challenge), service = await service(), asked = ScopedServer.Log()
        let stepUp = StepUp(
            meetingClaims: { challenge, token in
                let parts = ["acr_values", "max_age", "claims"].map { challenge[$0] ?? "none" }
                asked.append("\(parts.joined(separator: ", ")) instead of \(token.value)")
                return Self.strong
            },
            widen: { _, _ in throw ScriptedFailure() })
        let loader = try loader(server, service, stepUp)
        try await withThrowingTaskGroup { group in
            for _ in 1...10 {
                group.addTask {
                    let response = try await loader.perform(Request(url: server.url.appending(path: "strong")))
                    #expect(response.status == 200)
                }
            }
            try await group.waitForAll()
        }
        let isAzure = challenge.contains("claims=")
        #expect(
            asked.all == [
                isAzure
                    ? "none, none, eyJhY2Nlc3NfdG9rZW4iOnt9fQ== instead of t.read" : "phr phrh, 5, none instead of t.read"
            ])
        #expect(service.cachedToken?.value == "t.read.strong" && service.cachedToken?.scope == "read")
    }

    @Test func `a server that is never content with a sign-in doesn't have the user asked twice`() async throws {
        let server = try demandingServer(#"error="insufficient_user_authentication", max_age="0""#)
        let service = await service(), asked = ScopedServer.Log()
        let stepUp = StepUp(
            meetingClaims: { _, _ in
                asked.append("asked")
                return Self.strong
            },
            widen: { _, _ in throw ScriptedFailure() })
        let loader = try loader(server, service, stepUp)
        for _ in 1...3 {
            let error = await #expect(throws: DataLoadingError.self) {
                try await loader.perform(Request(url: server.url.appending(path: "more")))
            }
            #expect(error?.code == .unauthorized && error?.response?.status == 401)
        }
        #expect(asked.all == ["asked"])
    }

    @Test func `without a closure such a 401 ends the request and costs no load`() async throws {
        let server = try demandingServer(#"error="insufficient_user_authentication", max_age="0""#)
        let service = await service()
        let loader = try loader(server, service, StepUp { _, _ in throw ScriptedFailure() })
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader.perform(Request(url: server.url.appending(path: "more")))
        }
        #expect(error?.code == .unauthorized && server.log.all.count == 1 && service.cachedToken?.value == "t.read")
    }

    @Test func `the user is asked again when a server demands another sign-in of the token that has met the same demand`()
        async throws
    {
        let server = try demandingServer(#"error="insufficient_user_authentication", max_age="60""#)
        let service = await service(), asked = ScopedServer.Log()
        let stepUp = StepUp(
            meetingClaims: { _, token in
                asked.append(token.value)
                return AccessToken("\(token.value).time\(asked.all.count)", scope: "read")
            },
            widen: { _, _ in throw ScriptedFailure() })
        let loader = try loader(server, service, stepUp)
        // The second path is what the server demands a minute later.
        for path in ["time1", "time2"] {
            #expect(try await loader.perform(Request(url: server.url.appending(path: path))).status == 200)
        }
        #expect(asked.all == ["t.read", "t.read.time1"] && service.cachedToken?.value == "t.read.time1.time2")
    }

    @Test func `a token that meets a demand and that no request can carry is given up, and the current token stays`() async throws
    {
        let server = try demandingServer(#"error="insufficient_user_authentication""#), service = await service()
        let stepUp = StepUp(
            meetingClaims: { _, _ in AccessToken("mac", tokenType: "mac", scope: "read", refreshToken: "r") },
            widen: { _, _ in throw ScriptedFailure() })
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader(server, service, stepUp).perform(Request(url: server.url.appending(path: "strong")))
        }
        #expect(error?.code == .unusableToken && service.cachedToken?.value == "t.read")
        await discardedCount(1)
        #expect(discarded.all == ["mac"])
    }

    @Test(arguments: [true, false])
    func `a token that meets a demand with fewer scopes is installed only if the server accepts it`(isAccepted: Bool) async throws
    {
        let server = try demandingServer(#"error="insufficient_user_authentication""#)
        let service = await service(ScopedServer.token("read write")), asked = ScopedServer.Log()
        let stepUp = StepUp(
            meetingClaims: { _, _ in
                asked.append("asked")
                return AccessToken("t.strong", scope: "read", refreshToken: "r")
            },
            widen: { _, _ in throw ScriptedFailure() })
        let loader = try loader(server, service, stepUp)
        let request = Request(url: server.url.appending(path: isAccepted ? "strong" : "more"))
        for _ in 1...2 {
            let result = await Result { try await loader.perform(request) }
            #expect(isAccepted == ((try? result.get())?.status == 200))
        }
        #expect(asked.all == ["asked"] && service.cachedToken?.value == (isAccepted ? "t.strong" : "t.read.write"))
        await discardedCount(1)
        #expect(discarded.all == [isAccepted ? "t.read.write" : "t.strong"])
    }

    @Test func `a token that meets a demand but lacks a scope doesn't have the user asked at each request`() async throws {
        let server = try LoopbackServer { text in
            let isStrong = ResourceServer.Arrival(text: text).token == "t.strong"
            let error = isStrong ? "insufficient_scope" : "insufficient_user_authentication"
            return ResourceServer.status(isStrong ? 403 : 401, "WWW-Authenticate: Bearer error=\"\(error)\"\r\n")
        }
        let service = await service(ScopedServer.token("read write")), asked = ScopedServer.Log()
        let stepUp = StepUp(
            meetingClaims: { _, _ in
                asked.append("asked")
                return AccessToken("t.strong", scope: "read", refreshToken: "r")
            },
            widen: { _, _ in throw ScriptedFailure() })
        let loader = DataLoaderFactory(tokens: try OriginTokens(service, for: [server.url], stepUp: stepUp)).makeLoader()
        for _ in 1...3 {
            await #expect(throws: DataLoadingError.self) { try await loader.perform(Request(url: server.url)) }
        }
        #expect(asked.all == ["asked"] && service.cachedToken?.value == "t.read.write")
    }

    @Test func `a sign-out while the user signs in again gives up the new token`() async throws {
        let server = try demandingServer(#"error="insufficient_user_authentication""#), service = await service()
        let stepUp = StepUp(
            meetingClaims: { _, _ in
                _ = await service.reset()
                return Self.strong
            },
            widen: { _, _ in throw ScriptedFailure() })
        let loader = try loader(server, service, stepUp)
        let error = await #expect(throws: TokenServiceError.self) {
            try await loader.perform(Request(url: server.url.appending(path: "strong")))
        }
        #expect(error?.code == .reset && service.cachedToken == nil)
        await discardedCount(2)
        #expect(Set(discarded.all) == ["t.read", "t.read.strong"])
    }
}
