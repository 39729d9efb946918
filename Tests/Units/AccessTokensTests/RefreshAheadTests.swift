import AccessTokens
import AccessTokensTesting
import Testing

/// A token of an hour: soft window from 2,640 … 2,730 s, hard expiry at 3,540 s.
@Suite("Guarantee 10: refresh ahead")
struct RefreshAheadTests {
    private func sceneInWindow(isRepeatable: Bool = false) throws -> Scene {
        let scene = try Scene.holding(.hour("a"), isRepeatable: isRepeatable)
        scene.advance(by: .seconds(2730))
        return scene
    }

    @Test func `in the soft window callers get the current token at once while one load runs`() throws {
        let scene = try sceneInWindow()
        #expect(scene.calls(100).allSatisfy { $0.value?.value == "a" })
        #expect(scene.loader.loadCount == 2)
        try scene.deliver(.hour("b"))
        _ = try? scene.load()
        #expect(scene.call().value?.value == "b")
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `the first caller in the window claims the refresh without suspending`() async throws {
        let scene = try sceneInWindow()
        // The stage isn't run, so a caller that waited for the actor could not return.
        #expect(try await scene.service.retrieveToken().value == "a")
        scene.stage.run()
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `one caller claims the refresh for all: no other sends a task to the actor`() async throws {
        let scene = try sceneInWindow()
        for _ in 0..<100 { _ = try await scene.service.retrieveToken() }
        #expect(scene.stage.pending == 1)
    }

    @Test func `no timer starts a refresh: without callers nothing happens`() throws {
        let scene = try sceneInWindow()
        scene.advance(by: .seconds(100))
        #expect(scene.loader.loadCount == 1)
        #expect(scene.clock.sleeperCount == 0)
    }

    @Test(arguments: [0, 1, 2639])
    func `before the window no caller starts a refresh`(second: Int) throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(second))
        _ = scene.call()
        #expect(scene.loader.loadCount == 1)
    }

    // Museum 6: a failed refresh-ahead displaces a token that is still valid (google-cloud-rust#5809; soto-core).
    @Test func `a failed refresh keeps the token and is tried again after 30 s, doubling`() throws {
        let scene = try sceneInWindow()
        var loads = 1
        for pause in [30, 60, 120, 240] {
            #expect(scene.call().value?.value == "a")
            loads += 1
            #expect(scene.loader.loadCount == loads)
            scene.fail(try scene.load())
            scene.advance(by: .seconds(pause) - .milliseconds(1))
            #expect(scene.call().value?.value == "a")
            #expect(scene.loader.loadCount == loads, "not before the pause is over")
            scene.advance(by: .seconds(pause / 4) + .milliseconds(2))
        }
    }

    @Test func `a refused grant stops the refreshes until hard expiry, then callers ask once more`() throws {
        let scene = try sceneInWindow()
        _ = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure.grantRefused)
        scene.advance(by: .seconds(809))
        #expect(scene.call().value?.value == "a")
        #expect(scene.loader.loadCount == 2)
        scene.advance(by: .seconds(1))
        let caller = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure.grantRefused)
        #expect(caller.code == .loadFailed)
        _ = scene.call()
        #expect(scene.loader.loadCount == 3)
    }

    @Test func `at hard expiry callers join the running load, with its original limit`() throws {
        // The time-out comes at 3,610 s, after the token's end.
        let scene = try Scene.holding(.hour("a"), policy: RefreshPolicy(maximumLeeway: .seconds(10)))
        scene.advance(by: .seconds(3580))
        _ = scene.call()
        let refresh = try scene.load()
        scene.advance(by: .seconds(10))
        let waiting = scene.calls(2)
        #expect(scene.loader.loadCount == 2 && !waiting.contains { $0.isDone })
        scene.advance(by: .seconds(20) - .milliseconds(1))
        #expect(!waiting.contains { $0.isDone })
        scene.advance(by: .milliseconds(1))
        #expect(waiting.allSatisfy { $0.code == .loadTimedOut })
        scene.succeed(refresh, with: .hour("b"))
        #expect(scene.call().value?.value == "b")
    }

    @Test func `our pause after a failed refresh never delays callers at hard expiry`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3539))
        _ = scene.call()
        scene.fail(try scene.load())
        scene.advance(by: .seconds(1))
        let caller = scene.call()
        try scene.deliver(.hour("b"))
        #expect(caller.value?.value == "b")
    }

    @Test func `the server's Retry-After holds for every caller, beyond the token's end too`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3539))
        _ = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure(retryAfter: .seconds(100)))
        scene.advance(by: .seconds(1))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 2, "44: the token survives")
        scene.advance(by: .seconds(54))
        #expect(scene.call().retryAt == 3639)
        #expect(scene.loader.loadCount == 2)
    }

    @Test(arguments: [true, false])
    func `a refresh that never answers leaves the token, and is given up after its limit`(isRepeatable: Bool) throws {
        let scene = try sceneInWindow(isRepeatable: isRepeatable)
        _ = scene.call()
        let stuck = try scene.load()
        scene.advance(by: .seconds(30))
        #expect(scene.call().value?.value == "a")
        #expect(stuck.isCancelled == isRepeatable)
        scene.advance(by: .seconds(60))
        #expect(scene.call().value?.value == "a")
        #expect(scene.loader.loadCount == (isRepeatable ? 3 : 2))
        if !isRepeatable {
            scene.succeed(stuck, with: .hour("late"))
            #expect(scene.call().value?.value == "late")
        }
    }

    @Test func `a refresh that returns a token inside its leeway keeps the good one, and the new grant`() throws {
        let scene = try sceneInWindow()
        _ = scene.call()
        let refresh = try scene.load()
        scene.advance(by: .seconds(19))
        scene.succeed(refresh, with: AccessToken("short", lifetime: .seconds(20), refreshToken: "rotated"))
        #expect(scene.call().value?.value == "a")
        #expect(scene.loader.loadCount == 2, "and is not tried again at once")
        scene.advance(by: RefreshPolicy.longestRefreshPause * 1.25)
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "rotated", "which an attempt has spent: the pause is the longest")
    }

    @Test func `retryNow ends the pause of a failed refresh`() throws {
        let scene = try sceneInWindow()
        _ = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure.grantRefused)
        scene.retryNow()
        _ = scene.call()
        #expect(scene.loader.loadCount == 3)
    }

    @Test func `retryNow also ends the pause that a stalled refresh will leave`() throws {
        let scene = try sceneInWindow()
        _ = scene.call()
        let stuck = try scene.load()
        scene.advance(by: .seconds(30))
        scene.retryNow()
        scene.fail(stuck)
        _ = scene.call()
        #expect(scene.loader.loadCount == 3)
    }

    @Test func `the server's refresh_in takes precedence over the window`() throws {
        let scene = try Scene.holding(AccessToken("a", lifetime: .seconds(3600), refreshIn: .seconds(600)))
        scene.advance(by: .seconds(599))
        _ = scene.call()
        #expect(scene.loader.loadCount == 1)
        scene.advance(by: .seconds(1))
        _ = scene.call()
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `a caller whom only the actor can answer claims the refresh too`() throws {
        let scene = try sceneInWindow()
        // So does a call behind a callback's operation, although there is a token.
        scene.perform { service in await service.joinCallbacks(callers: 1, seen: 0) { _ in } }
        #expect(scene.loader.loadCount == 2)
    }

    // At each of the two clock readings of a call for which more than handing out the token is due.
    @Test(arguments: [1, 2])
    func `of two callers who see at the same moment that a refresh is due one claims it`(reading: Int) {
        let stage = Stage(), clock = ManualClock(), meanwhile = Meanwhile()
        let odd = OddClock(clock, onReading: meanwhile.read)
        let service = TokenService(environment: .driven(by: stage, clock: odd), loader: ScriptedLoader())
        _ = stage.start { await service.replace(with: .hour("a")) }
        clock.advance(by: .seconds(2_730))
        meanwhile.atReading(reading) { _ = service.look() }
        _ = service.look()
        #expect(stage.pending == 1)
    }

    @Test func `while a refresh runs, callers send no task to the actor`() throws {
        let scene = try sceneInWindow()
        _ = scene.call()
        for _ in 0..<3 { #expect(scene.service.look().token?.value == "a") }
        #expect(scene.stage.pending == 0)
    }

    @Test func `a refresh that three given-up loads keep from starting is requested again only after a pause`() throws {
        let scene = try sceneInWindow(isRepeatable: true)
        for _ in 1...3 {
            scene.retryNow()
            _ = scene.call()
            _ = try scene.load()
            scene.advance(by: .seconds(30))
        }
        scene.retryNow()
        #expect(scene.call().value?.value == "a")
        #expect(scene.loader.loadCount == 4)
        _ = scene.service.look()
        #expect(scene.stage.pending == 0)
    }

    @Test func `retryNow resets the count of failed refreshes`() throws {
        let scene = try sceneInWindow()
        for _ in 1...3 {
            scene.retryNow()
            _ = scene.call()
            scene.fail(try scene.load())
        }
        scene.advance(by: .seconds(38))
        _ = scene.call()
        #expect(scene.loader.loadCount == 5, "after a first failure 30 … 37.5 s")
    }

    @Test func `a refused client is asked again after the longest pause`() throws {
        let scene = try sceneInWindow()
        _ = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure.clientRefused)
        scene.advance(by: .seconds(299))
        _ = scene.call()
        #expect(scene.loader.loadCount == 2)
        scene.advance(by: .seconds(77))
        _ = scene.call()
        #expect(scene.loader.loadCount == 3)
    }

    @Test func `a refresh that fails after hard expiry fails like any load, even if no caller came in between`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3_530))
        _ = scene.call()
        let refresh = try scene.load()
        scene.advance(by: .seconds(10))
        scene.fail(refresh, with: ScriptedFailure.grantRefused)
        #expect(scene.call().code == .loadFailed)
        #expect(scene.loader.loadCount == 2)
    }

    @Test
    func `a token inside its leeway that arrives after hard expiry is no failed refresh, even without a caller between`()
        throws
    {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3_530))
        _ = scene.call()
        let refresh = try scene.load(), events = scene.service.events()
        scene.advance(by: .seconds(19))
        scene.succeed(refresh, with: AccessToken("short", lifetime: .seconds(20)))
        #expect(scene.told(by: events).map(\.name) == [.loadSucceeded])
    }

    @Test(arguments: [true, false])
    func `a stalled refresh doesn't time out a second time when its token ends`(isRefused: Bool) throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3_500))
        _ = scene.call()
        scene.advance(by: .seconds(30))
        #expect(scene.call().value?.value == "a")
        let events = scene.service.events()
        if isRefused { scene.invalidate(.hour("a")) } else { scene.advance(by: .seconds(64)) }
        #expect(scene.call().code == .loadTimedOut)
        #expect(scene.told(by: events).map(\.name) == (isRefused ? [.invalidated] : []))
    }
}
