import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 23: only so many idle services are kept, and nothing is lost with the others") struct EvictionTests {
    @Test func `the least recently used idle service goes first`() throws {
        let scene = KeyScene(keepingIdle: 2)
        for key in ["a", "b"] { try scene.hold(.hour("1"), for: key) }
        #expect(scene.call("a").value != nil)
        try scene.hold(.hour("1"), for: "c")
        #expect(scene.counts == [0, 2, 0])
        #expect(scene.call("a").value != nil, "a was used after b")
        _ = scene.call("b")
        #expect(scene.makings == ["a", "b", "c", "b"])
    }

    @Test func `a service that is still held elsewhere is found again, not doubled`() throws {
        let scene = KeyScene(keepingIdle: 1)
        let held = scene.services["a"]
        _ = scene.services["b"]
        #expect(scene.counts == [0, 1, 1])
        #expect(scene.services["a"] === held)
        #expect(scene.makings == ["a", "b"])
    }

    @Test func `nothing of an evicted service stays in memory`() {
        let scene = KeyScene(keepingIdle: 1)
        for number in 1...1_000 { _ = scene.services["\(number)"] }
        #expect(scene.counts == [0, 1, 0])
    }

    @Test func `an evicted service that gets work is kept until that work is done`() throws {
        let scene = KeyScene(keepingIdle: 0)
        var held: TokenService? = scene.services["a"]
        let caller = scene.stage.start { [held] in try await held?.retrieveToken() }
        #expect(scene.counts == [1, 0, 0])
        held = nil
        #expect(scene.services["a"].cachedToken == nil && scene.makings == ["a"])
        try scene.succeed("a", with: .hour("1"))
        #expect(caller.value??.value == "1")
        #expect(scene.counts == [0, 0, 0])
    }

    @Test func `a service is kept while callers wait, and evicted afterwards`() throws {
        let scene = KeyScene(keepingIdle: 0)
        let caller = scene.call("a")
        _ = scene.services["b"]
        #expect(scene.counts == [1, 0, 0])
        try scene.succeed("a", with: .hour("1"))
        #expect(caller.value?.value == "1")
        #expect(scene.counts == [0, 0, 0])
        #expect(scene.makings == ["a", "b"])
    }

    @Test func `a load that runs keeps its service after its callers have left`() throws {
        let scene = KeyScene(keepingIdle: 0)
        let caller = scene.call("a")
        caller.cancel()
        scene.stage.run()
        #expect(caller.isCancelledWithError)
        #expect(scene.counts == [1, 0, 0])
        try scene.succeed("a", with: .hour("1"))
        #expect(scene.counts == [0, 0, 0])
    }

    @Test(arguments: [true, false])
    func `46: a load that never ends keeps its service only as long as it delays another load`(isFenced: Bool) throws {
        let scene = KeyScene(keepingIdle: 0)
        _ = scene.call("a")
        let lost = try scene.load("a")
        if isFenced { scene.perform("a") { _ = await $0.reset() } }
        scene.advance(by: .seconds(30))
        scene.advance(by: .seconds(90) - .milliseconds(1))
        #expect(scene.counts == [1, 0, 0])
        scene.advance(by: .milliseconds(1))
        #expect(scene.counts == [0, 0, 1], "the load holds it")
        _ = scene.call("a")
        #expect(scene.makings == ["a"])
        try scene.succeed("a", with: .hour("a"))
        #expect(scene.counts == [0, 0, 1])
        scene.succeed(lost, with: .hour("late"))
        #expect(scene.counts == [0, 0, 0])
    }

    @Test func `a pause after failures keeps its service until a minute after the pause`() throws {
        let scene = KeyScene(keepingIdle: 0)
        for _ in 1...3 {
            _ = scene.call("a")
            try scene.fail("a")
            scene.advance(by: .milliseconds(1_250))
        }
        #expect(scene.makings == ["a"], "one failure count")
        // The third failure's pause is 2 to 2.5 s; 1.25 s of it have already passed.
        scene.advance(by: .seconds(60))
        #expect(scene.counts == [1, 0, 0])
        scene.advance(by: .milliseconds(1_250))
        #expect(scene.counts == [0, 0, 0])
    }

    @Test func `unclear refusals keep their service long enough for a caller every ten minutes to reach the third one`() throws {
        let scene = KeyScene(keepingIdle: 0), unclear = ScriptedFailure(.signInOrRegistration)
        /// A caller that is kept would keep the service.
        func refuse() throws -> TokenServiceError.Remedy? {
            let caller = scene.call("a")
            try scene.fail("a", with: unclear)
            return (caller.error as? TokenServiceError)?.remedy
        }
        for number in 1...3 {
            #expect(try refuse() == (number < 3 ? .signInOrRegistration : .signIn))
            scene.advance(by: .seconds(599))
            #expect(scene.counts == [1, 0, 0])
        }
        #expect(scene.makings == ["a"])
        _ = scene.call("b")
        try scene.fail("b", with: unclear)
        scene.advance(by: .seconds(1_200))
        #expect(scene.counts == [1, 0, 0], "only the refused grant's")
    }

    @Test func `a refused grant keeps its service, which starts no more loads`() throws {
        let scene = KeyScene(keepingIdle: 0)
        _ = scene.call("a")
        try scene.fail("a", with: ScriptedFailure.grantRefused)
        scene.advance(by: .seconds(100_000))
        #expect(scene.counts == [1, 0, 0])
        #expect(scene.call("a").code == .loadFailed && scene.loadCount("a") == 1)
        scene.perform("a") { _ = await $0.reset() }
        #expect(scene.counts == [0, 0, 0])
    }

    @Test func `a failing refresh keeps its service as long as the token is good`() throws {
        let scene = KeyScene(keepingIdle: 0, isRepeatable: true)
        let service = scene.services["a"]
        try scene.hold(.hour("1"), for: "a")
        #expect(scene.counts == [0, 0, 1])
        scene.advance(by: .seconds(2_800))
        _ = scene.call("a")
        try scene.fail("a")
        #expect(scene.counts == [1, 0, 0])
        scene.advance(by: .seconds(740))
        #expect(scene.counts == [0, 0, 1])
        _ = service
    }

    @Test func `a refused token keeps its service until it has expired`() throws {
        let scene = KeyScene(keepingIdle: 0, hasStores: true)
        try scene.hold(.hour("1"), for: "a")
        scene.perform("a") { [token = AccessToken.hour("1")] in await $0.invalidate(token) }
        #expect(scene.counts == [1, 0, 0], "another service would restore it from the store")
        let caller = scene.call("a")
        #expect(scene.loadCount("a") == 2)
        try scene.succeed("a", with: .hour("2"))
        #expect(caller.value?.value == "2")
        scene.advance(by: .seconds(3_599))
        #expect(scene.counts == [1, 0, 0])
        scene.advance(by: .seconds(1))
        #expect(scene.services.counts.released == 0, "the first to ask sees that it has ended")
        #expect(scene.counts == [0, 0, 0])
    }

    @Test(arguments: [0, 1_800]) func `a token refused without its lifetime keeps its service until the last one has expired`(
        age: Int
    ) throws {
        let scene = KeyScene(keepingIdle: 0, hasStores: true), service = scene.services["a"]
        try scene.hold(.hour("1"), for: "a")
        scene.advance(by: .seconds(age))
        scene.perform("a") { await $0.invalidate(AccessToken("1", lifetime: nil)) }
        scene.advance(by: .seconds(3_599 - age))
        #expect(scene.counts == [1, 0, 0])
        scene.advance(by: .seconds(1))
        #expect(scene.counts[0] == 0)
        _ = service
    }

    @Test func `a refused token that never expires keeps its service`() throws {
        let scene = KeyScene(keepingIdle: 0)
        let service = scene.services["a"]
        try scene.hold(AccessToken("1", lifetime: nil), for: "a")
        scene.perform("a") { await $0.invalidate(AccessToken("1", lifetime: nil)) }
        scene.advance(by: .seconds(1_000_000))
        #expect(scene.counts == [1, 0, 0])
        _ = service
    }

    // MARK: Grants

    @Test func `without a store, the only copy of a refresh token is never evicted`() throws {
        let scene = KeyScene(keepingIdle: 0)
        try scene.hold(.granted("1"), for: "a")
        scene.advance(by: .seconds(100_000))
        #expect(scene.counts == [1, 0, 0])
        _ = scene.call("a")
        #expect(try scene.load("a").previous?.refreshToken == "1's grant")
    }

    @Test func `a key's next service restores what the previous one saved`() throws {
        let scene = KeyScene(keepingIdle: 0, hasStores: true)
        try scene.hold(.granted("1"), for: "a")
        #expect(scene.counts == [0, 0, 0])
        #expect(scene.call("a").value?.value == "1", "restored, without a load")
        #expect(scene.loadCount("a") == 1 && scene.makings == ["a", "a"])
        scene.advance(by: .seconds(3_600))
        _ = scene.call("a")
        #expect(try scene.load("a").previous?.refreshToken == "1's grant")
    }

    @Test func `a grant that is being saved, or whose save failed, keeps its service until it is saved`() throws {
        let scene = KeyScene(keepingIdle: 0, hasStores: true), store = try #require(scene.stores?["a"])
        store.fail(.save)
        try scene.hold(.granted("1"), for: "a")
        #expect(scene.counts == [1, 0, 0], "the store failed")
        store.fail()
        scene.advance(by: .seconds(3_600))
        store.hold()
        _ = scene.call("a")
        let load = try scene.load("a")
        #expect(load.previous?.refreshToken == "1's grant")
        load.succeed(with: .granted("2"))
        scene.stage.run()
        scene.advance(by: .seconds(6))
        #expect(scene.counts == [1, 0, 0], "the store is late")
        store.release()
        scene.stage.run()
        #expect(scene.counts == [0, 0, 0])
    }

    @Test func `a sign-out whose removal failed keeps its service, which restores nothing`() throws {
        let scene = KeyScene(keepingIdle: 0, hasStores: true), store = try #require(scene.stores?["a"])
        try scene.hold(.granted("1"), for: "a")
        store.fail(.remove)
        scene.perform("a") { _ = await $0.reset() }
        #expect(scene.counts == [1, 0, 0] && store.contents?.value == "1")
        _ = scene.call("a")
        #expect(try scene.load("a").previous == nil)
    }

    @Test func `a service works on after the table that made it is released`() throws {
        let stage = Stage(), loader = ScriptedLoader()
        var services: TokenServices? = TokenServices<String>(environment: .driven(by: stage)) { _ in loader }
        let service = try #require(services?["a"])
        services = nil
        let caller = stage.start { try await service.retrieveToken() }
        let call = stage.start { try await loader.nextCall() }
        call.value?.succeed(with: .hour("1"))
        stage.run()
        #expect(caller.value?.value == "1")
    }
}

/// A key that uses the services in its `deinit`.
private final class Caller: Hashable, Sendable {
    let number: Int
    let services: @Sendable () -> TokenServices<Caller>?

    init(_ number: Int, _ services: @escaping @Sendable () -> TokenServices<Caller>?) {
        self.number = number
        self.services = services
    }

    deinit { _ = services()?.counts }

    static func == (one: Caller, other: Caller) -> Bool { one.number == other.number }
    func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

@Suite struct KeyLifetimeTests {
    @Test(arguments: [0, 1, 3])
    func `a key whose deinit uses the services is released outside their lock`(limit: Int) {
        let box = Lock<TokenServices<Caller>?>(nil)
        let services = TokenServices<Caller>(keepingIdle: limit) { _, _ in .hour("token") }
        box.withLock { $0 = services }
        for number in 0..<50 { _ = services[Caller(number % 7) { box.withLock { $0 } }] }
        #expect(services.counts.idle == limit)
        box.withLock { $0 = nil }
    }
}
