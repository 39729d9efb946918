import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Synchronization
import Testing

@Suite("Guarantees 20, 22 and 25: each key has a service of its own") struct TokenServicesTests {
    @Test func `callers of one key share a load, and keys load at once`() throws {
        let scene = KeyScene()
        let first = [scene.call("a"), scene.call("a")], other = scene.call("b")
        #expect(scene.loadCount("a") == 1 && scene.loadCount("b") == 1)
        try scene.succeed("b", with: .hour("b1"))
        #expect(other.value?.value == "b1", "b doesn't wait for a")
        try scene.succeed("a", with: .hour("a1"))
        #expect(first.map { $0.value?.value } == ["a1", "a1"])
        #expect(scene.services["a"].cachedToken?.value == "a1" && scene.services["b"].cachedToken?.value == "b1")
    }

    @Test func `a key's service is made once, and is the same each time`() {
        let scene = KeyScene()
        let service = scene.services["a"]
        #expect(scene.services["a"] === service && scene.services["b"] !== service)
        #expect(scene.makings == ["a", "b"])
    }

    @Test func `a key whose loads fail pauses alone, and another key's token is loaded meanwhile`() throws {
        let scene = KeyScene()
        for _ in 1...2 {
            _ = scene.call("a")
            try scene.fail("a")
        }
        #expect(scene.call("a").code == .loadFailed, "a pauses")
        #expect(scene.loadCount("a") == 2)
        try scene.hold(.hour("b1"), for: "b")
        #expect(scene.call("b").value?.value == "b1")
    }

    @Test func `a load fails with the error of a loader that can't be made, and the next one makes it again`() async throws {
        struct Unknown: TokenLoadFailure { let remedy = TokenServiceError.Remedy.retry }
        let server = SimulatedAuthorizationServer(clock: ManualClock()), known = Mutex<Set<String>>(["b"])
        let services = TokenServices<String> { key -> any TokenLoader in
            guard known.withLock({ $0.contains(key) }) else { throw Unknown() }
            return server.loader
        }
        let error = await #expect(throws: TokenServiceError.self) { try await services["a"].retrieveToken() }
        #expect(error?.underlying is Unknown)
        #expect(try await services["b"].retrieveToken().value == "access-1")
        _ = known.withLock { $0.insert("a") }
        #expect(try await services["a"].retrieveToken().value == "access-2")
    }

    @Test func `each key has the policy that was chosen for it`() throws {
        let stage = Stage(), clock = ManualClock(), loader = ScriptedLoader(isRepeatable: true)
        let services = TokenServices<Int>(
            policy: { RefreshPolicy(loadTimeout: .seconds($0)) }, environment: .driven(by: stage, clock: clock)
        ) { _ in loader }
        let callers = [5, 10].map { key in stage.start { try await services[key].retrieveToken() } }
        clock.advance(by: .seconds(5))
        stage.run()
        #expect(callers.map(\.code) == [.loadTimedOut, nil])
    }

    @Test func `keys that got their tokens at the same moment refresh them at different moments`() throws {
        let scene = KeyScene(isRepeatable: true)
        let keys = (0..<20).map { "\($0)" }
        for key in keys { try scene.hold(.hour("1"), for: key) }
        scene.advance(by: .seconds(2_640))
        var moments: Set<Int> = []
        for moment in 0..<90 {
            for key in keys where scene.loadCount(key) == 1 {
                _ = scene.call(key)
                if scene.loadCount(key) == 2 { moments.insert(moment) }
            }
            scene.advance(by: .seconds(1))
        }
        #expect(moments.count > 5, "each service draws its own jitter: \(moments)")
    }

    @Test func `a description of the services names no key`() {
        let scene = KeyScene()
        _ = scene.services["secret"]
        var dumped = ""
        dump(scene.services, to: &dumped)
        #expect("\(scene.services)" == "TokenServices" && !dumped.contains("secret"))
        #expect(!String(reflecting: scene.services).contains("secret"))
    }
}
