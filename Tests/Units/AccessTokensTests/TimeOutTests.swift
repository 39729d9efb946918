import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantee 9: loads end")
struct TimeOutTests {
    // Museum 14: a never-answering loader blocks all later callers (MeetingBar PR#951; KTOR-5879).
    @Test func `a repeatable load is cancelled after its limit, and the next caller starts afresh`() throws {
        let scene = Scene(isRepeatable: true)
        let waiting = scene.calls(3)
        let stuck = try scene.load()
        scene.advance(by: .seconds(30) - .milliseconds(1))
        #expect(!waiting.contains { $0.isDone })
        scene.advance(by: .milliseconds(1))
        #expect(waiting.allSatisfy { $0.code == .loadTimedOut })
        #expect(stuck.isCancelled)
        let next = scene.call()
        try scene.deliver(.hour("b"))
        #expect(next.value?.value == "b")
    }

    @Test func `an unrepeatable load is neither cancelled nor repeated; callers get the time-out error at once`() throws {
        let scene = Scene()
        _ = scene.call()
        let stuck = try scene.load()
        scene.advance(by: .seconds(30))
        #expect(!stuck.isCancelled)
        scene.advance(by: .seconds(89))
        #expect(scene.call().code == .loadTimedOut)
        #expect(scene.loader.loadCount == 1)
        scene.succeed(stuck, with: AccessToken("late", lifetime: .seconds(119)))
        #expect(scene.call().code == .tokenExpiredOnArrival, "its lifetime counts from the load's start: it has passed")
    }

    @Test func `an unrepeatable load's late success is kept`() throws {
        let scene = Scene()
        _ = scene.call()
        let stuck = try scene.load()
        scene.advance(by: .seconds(31))
        scene.succeed(stuck, with: AccessToken("late", lifetime: .seconds(3600), refreshToken: "rotated"))
        #expect(scene.call().value?.value == "late")
    }

    @Test func `an unrepeatable load's late failure lets the next caller try`() throws {
        let scene = Scene()
        _ = scene.call()
        let stuck = try scene.load()
        scene.advance(by: .seconds(31))
        scene.fail(stuck)
        _ = scene.call()
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `a late failure's Retry-After is honoured`() throws {
        let scene = Scene()
        _ = scene.call()
        let stuck = try scene.load()
        scene.advance(by: .seconds(31))
        scene.fail(stuck, with: ScriptedFailure(retryAfter: .seconds(120)))
        #expect(scene.call().retryAt == 151)
        #expect(scene.loader.loadCount == 1)
    }

    @Test func `after a late refusal of the grant the server is asked no more`() throws {
        let scene = Scene()
        _ = scene.call()
        let stuck = try scene.load()
        scene.advance(by: .seconds(31))
        scene.fail(stuck, with: ScriptedFailure.grantRefused)
        #expect((scene.call().error as? TokenServiceError)?.remedy == .signIn)
        #expect(scene.loader.loadCount == 1)
    }

    // Museum 9: a finished flight's clean-up evicts its successor (Firebase; Duende; golang/go#31420).
    @Test func `9: a late refusal of the grant ends the session, as it would have in time`() throws {
        let scene = Scene(isRepeatable: true)
        scene.replace(with: AccessToken("", lifetime: .zero, refreshToken: "r"))
        let caller = scene.call(), load = try scene.load()
        scene.advance(by: .seconds(30))
        #expect(caller.code == .loadTimedOut)
        scene.fail(load, with: ScriptedFailure.grantRefused)
        #expect((scene.call().error as? TokenServiceError)?.remedy == .signIn && scene.loader.loadCount == 1)
    }

    @Test func `9: a late refusal of the grant has no effect while a younger load runs or after it brought a token`() throws {
        for isRunning in [true, false] {
            let scene = Scene(isRepeatable: true)
            scene.replace(with: AccessToken("", lifetime: .zero, refreshToken: "r"))
            _ = scene.call()
            let older = try scene.load()
            scene.advance(by: .seconds(30))
            let caller = scene.call(), younger = try scene.load()
            if isRunning { scene.fail(older, with: ScriptedFailure.grantRefused) }
            scene.succeed(younger, with: .granted("a"))
            if !isRunning { scene.fail(older, with: ScriptedFailure.grantRefused) }
            #expect(caller.value?.value == "a" && scene.call().value?.value == "a")
        }
    }

    @Test func `9: a late refusal ahead of the leeway leaves the token until its leeway begins`() throws {
        let scene = try Scene.holding(.granted("a"), isRepeatable: true)
        scene.advance(by: .seconds(3_000))
        _ = scene.call()
        let refresh = try scene.load()
        scene.advance(by: .seconds(30))
        scene.fail(refresh, with: ScriptedFailure.grantRefused)
        #expect(scene.call().value?.value == "a")
        scene.advance(by: .seconds(510))
        let caller = scene.call()
        scene.fail(try scene.load())
        #expect(caller.code == .loadFailed)
    }

    @Test func `a late success answers the current waiters, and a later failure of the younger load is ignored`() throws {
        let scene = Scene(isRepeatable: true)
        _ = scene.call()
        let old = try scene.load()
        scene.advance(by: .seconds(30))
        let waiting = scene.calls(2)
        let young = try scene.load()
        let success = scene.service.events(), events = scene.service.events(bufferingNewest: 1)
        scene.succeed(old, with: .hour("old"))
        #expect(waiting.allSatisfy { $0.value?.value == "old" })
        let served = scene.stage.start { await success.first { _ in true }?.callers }
        #expect(served.value == 2, "those who waited for the younger")
        scene.fail(young, with: ScriptedFailure(retryAfter: .seconds(3_600)))
        #expect(scene.call().value?.value == "old")
        #expect(scene.loader.loadCount == 2)
        // It is ignored: there is no event, and the old token's refresh stays scheduled.
        scene.advance(by: .seconds(2_700))
        #expect(scene.call().value?.value == "old")
        #expect(scene.loader.loadCount == 3)
        let last = scene.stage.start { await events.first { _ in true }?.name }
        #expect(last.value == .refreshStarted)
    }

    @Test func `a late success is ignored once a newer token has been published`() throws {
        let scene = Scene(isRepeatable: true)
        _ = scene.call()
        let old = try scene.load()
        scene.advance(by: .seconds(30))
        _ = scene.call()
        try scene.deliver(.hour("young"))
        scene.succeed(old, with: .hour("old"))
        #expect(scene.call().value?.value == "young")
    }

    @Test func `a late failure of an old load does not end the young one`() throws {
        let scene = Scene(isRepeatable: true)
        _ = scene.call()
        let old = try scene.load()
        scene.advance(by: .seconds(30))
        let waiting = scene.call()
        scene.fail(old)
        #expect(!waiting.isDone)
        try scene.deliver(.hour("young"))
        #expect(waiting.value?.value == "young")
    }

    @Test func `at most two given-up loads run beside the current one; then callers get the time-out error at once`() throws {
        let scene = Scene(isRepeatable: true)
        var stuck: [ScriptedLoader.Call] = []
        for _ in 1...3 {
            scene.retryNow()
            _ = scene.call()
            stuck.append(try scene.load())
            scene.advance(by: .seconds(30))
        }
        #expect(scene.call().code == .loadTimedOut)
        #expect(scene.loader.loadCount == 3)
        scene.fail(stuck[0])
        _ = scene.call()
        #expect(scene.loader.loadCount == 4)
    }

    @Test(arguments: [true, false])
    func `a fence frees a service whose load never ends`(byReset: Bool) throws {
        let scene = Scene()
        _ = scene.call()
        _ = try scene.load()
        scene.advance(by: .seconds(60))
        if byReset { scene.reset() } else { scene.replace(with: .hour("given")) }
        let caller = scene.call()
        if byReset { try scene.deliver(.hour("b")) }
        #expect(caller.value != nil)
    }

    @Test func `a success that reaches the actor before the timer wins, however far the clock has advanced`() throws {
        let scene = Scene()
        let caller = scene.call()
        let load = try scene.load()
        load.succeed(with: .hour("a"))
        scene.clock.advance(by: .seconds(31))
        scene.stage.run()
        #expect(caller.value?.value == "a")
    }

    @Test(arguments: [1, 10, 300])
    func `the limit is taken from the policy`(seconds: Int) throws {
        let scene = Scene(policy: RefreshPolicy(loadTimeout: .seconds(seconds)))
        let caller = scene.call()
        scene.advance(by: .seconds(seconds))
        #expect(caller.code == .loadTimedOut)
    }

    @Test func `a late token that has already expired doesn't end the younger load`() throws {
        let scene = Scene(isRepeatable: true)
        _ = scene.call()
        let old = try scene.load()
        scene.advance(by: .seconds(30))
        let waiting = scene.call()
        scene.succeed(old, with: AccessToken("late", lifetime: .seconds(30)))
        #expect(!waiting.isDone)
        try scene.deliver(.hour("young"))
        #expect(waiting.value?.value == "young")
    }
}
