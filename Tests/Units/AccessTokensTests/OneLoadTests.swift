import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantees 1–3: one load, one answer, and a valid token costs nothing")
struct OneLoadTests {
    // Museum 1: check, suspend, set makes two loads (aws-sdk-swift's cached resolver; spring-security#14123: 20 fetches). Museum
    // 28: waiting by blocking a thread of the pool (okta-mobile-swift PR#272; MSAL common PR#911). The stage has only one thread,
    // on which all callers wait.
    @Test(arguments: [1, 2, 3, 100, 1_000])
    func `1: any number of callers share one load`(callers: Int) throws {
        let scene = Scene()
        let waiting = scene.calls(callers)
        let token = try scene.deliver(.hour("a"))
        #expect(waiting.allSatisfy { $0.value == token })
        #expect(scene.loader.loadCount == 1)
    }

    // Museum 2: the flag set inside the spawned work (google-cloud-go PR#12586). Here the load has not even begun to run.
    @Test func `1: a caller that arrives before the load's first step joins it`() throws {
        let scene = Scene()
        let pair = scene.stage.start { [service = scene.service] in
            async let first = service.retrieveToken()
            async let second = service.retrieveToken()
            return try await [first, second]
        }
        let token = try scene.deliver(.hour("a"))
        #expect(pair.value == [token, token])
        #expect(scene.loader.loadCount == 1)
    }

    @Test func `2: waiters are answered in the order of their arrival`() throws {
        let scene = Scene()
        let order = Log<Int>()
        for caller in 0..<50 {
            _ = scene.stage.start { [service = scene.service] in
                _ = try await service.retrieveToken()
                order.append(caller)
            }
        }
        try scene.deliver(.hour("a"))
        #expect(order.entries == Array(0..<50))
    }

    // Museum 17: a waiter woken before the value is published (google-auth-java#692).
    @Test func `2: a caller that asks again after its answer finds the token published`() throws {
        let scene = Scene()
        let twice = scene.stage.start { [service = scene.service] in
            let first = try await service.retrieveToken()
            return (first, service.cachedToken)
        }
        let token = try scene.deliver(.hour("a"))
        #expect(twice.value?.0 == token && twice.value?.1 == token)
    }

    @Test func `2: a handler called on the actor itself already finds the token published`() throws {
        let scene = Scene()
        let seen = Log<String?>()
        scene.perform { service in
            await service.joinCallbacks(callers: 1, seen: 0) { _ in seen.append(service.cachedToken?.value) }
        }
        try scene.deliver(.hour("a"))
        #expect(seen.entries == ["a"])
    }

    // Museum 16: a continuation resumed twice (okta-mobile-swift#170): a late second outcome finds no caller to resume.
    @Test func `2: a caller that left is not answered, and one that was answered cannot leave`() throws {
        let scene = Scene()
        let leaver = scene.call(), stayer = scene.call()
        leaver.cancel()
        try scene.deliver(.hour("a"))
        stayer.cancel()
        scene.stage.run()
        #expect(leaver.isCancelledWithError)
        #expect(stayer.value?.value == "a")
    }

    @Test func `3: a valid token is returned without a load and without suspending`() async throws {
        let scene = try Scene.holding(.hour("a"))
        // Only the stage runs the actor's jobs, so a call that needed the actor could not return.
        let token = try await scene.service.retrieveToken()
        #expect(token.value == "a")
        #expect(scene.loader.loadCount == 1)
    }

    @Test func `3: a cancelled caller gets a valid token too`() throws {
        let scene = try Scene.holding(.hour("a"))
        let cancelled = scene.stage.startCancelled { [service = scene.service] in try await service.retrieveToken() }
        #expect(cancelled.value?.value == "a")
    }

    @Test(arguments: [Duration.zero, .seconds(-1), .seconds(5)])
    func `3: a hit ignores the caller's limit`(limit: Duration) throws {
        let scene = try Scene.holding(.hour("a"))
        #expect(scene.call(within: limit).value?.value == "a")
    }

    @Test func `cachedToken starts no load and returns only a token that may be handed out`() throws {
        let scene = Scene()
        #expect(scene.service.cachedToken == nil)
        scene.stage.run()
        #expect(scene.loader.loadCount == 0)
        let held = try Scene.holding(.hour("a"))
        #expect(held.service.cachedToken?.value == "a")
        held.advance(by: .seconds(3_600))
        #expect(held.service.cachedToken == nil)
        #expect(held.loader.loadCount == 1)
    }

    // Museum 25: token and expiry read at different moments (aws-sdk-go#3448): they are one copy here.
    @Test(arguments: [(3539, true), (3540, false)])
    func `3: at the very moment of hard expiry the token is no longer handed out`(second: Int, isHit: Bool) throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(second))
        #expect((scene.service.cachedToken != nil) == isHit)
    }

    @Test(arguments: [1, 2])
    func `3: a token is judged by its own expiry, even if another replaces it meanwhile`(reading: Int) async throws {
        let stage = Stage(), clock = ManualClock(), meanwhile = Meanwhile()
        let odd = OddClock(clock, onReading: meanwhile.read)
        let service = TokenService(environment: .driven(by: stage, clock: odd), loader: ScriptedLoader())
        _ = stage.start { await service.replace(with: .hour("old")) }
        clock.advance(by: .seconds(3_540))
        // Between the caller's copy (it may make two) and any other reading of the state.
        meanwhile.atReading(reading) { _ = stage.start { await service.replace(with: .hour("new")) } }
        #expect(try await service.retrieveToken().value == "new")
    }
}
