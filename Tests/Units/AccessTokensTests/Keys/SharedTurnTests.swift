import AccessTokens
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@testable import AccessTokensKeys

/// The keys a1, a2 and a3 share a refresh token, which the key a keeps; loads have 30 s.
@Suite("Guarantee 46: a load that never ends gives up its turn")
struct SharedTurnTests {
    /// Returns a scene in which a load of a1 has its turn, with the refresh token r1, and doesn't end by itself.
    private func scene(isRepeatable: Bool = false) throws -> (KeyScene, ScriptedLoader.Call) {
        let scene = KeyScene(isRepeatable: isRepeatable, grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        scene.advance(by: .seconds(3_600))
        _ = scene.call("a1")
        return (scene, try scene.load("a1"))
    }

    @Test(arguments: [true, false])
    func `46: a load that never ends delays other keys only as long as its own key`(isRepeatable: Bool) throws {
        let (scene, _) = try scene(isRepeatable: isRepeatable)
        _ = scene.call("a2")
        #expect(scene.loadCount("a2") == 0)
        scene.advance(by: .seconds(isRepeatable ? 30 : 120) - .milliseconds(1))
        _ = scene.call("a3")
        #expect(scene.loadCount("a2") == 0 && scene.loadCount("a3") == 0)
        scene.advance(by: .milliseconds(1))
        let load = try scene.load("a3")
        #expect(load.previous?.refreshToken == "r1")
        scene.succeed(load, with: .granted("a3 1", by: "r2"))
        for key in ["a1", "a2"] {
            let caller = scene.call(key), load = try scene.load(key)
            #expect(load.previous?.refreshToken == (key == "a1" ? "r2" : "a1"))
            scene.succeed(load, with: .granted(key, by: key))
            #expect(caller.value?.value == key)
        }
    }

    @Test(arguments: [true, false])
    func `46: a sign-in or a sign-out of any key takes the turn at once from a load that never ends`(signsOut: Bool) throws {
        let (scene, lost) = try scene()
        if signsOut { scene.perform("a2") { _ = await $0.reset() } }
        scene.perform("a2") { await $0.replace(with: .granted("a2 1", by: "new")) }
        let caller = scene.call("a3"), load = try scene.load("a3")
        #expect(load.previous?.refreshToken == "new")
        scene.succeed(load, with: .granted("a3 1", by: "newer"))
        #expect(caller.value?.value == "a3 1")
        scene.succeed(lost, with: .granted("late", by: "r2"))
        #expect(scene.discards.last == "a:  replaced", "\(scene.discards)")
        _ = scene.call("a1")
        #expect(try scene.load("a1").previous?.refreshToken == "newer")
    }

    @Test(arguments: [true, false])
    func `46: a sign-in through another key frees the key of a load that never ends, at once or at its limit`(isStalled: Bool)
        throws
    {
        let (scene, lost) = try scene()
        if isStalled { scene.advance(by: .seconds(30)) }
        scene.perform("a2") { await $0.replace(with: .granted("a2 1", by: "new")) }
        if !isStalled { scene.advance(by: .seconds(30)) }
        let caller = scene.call("a1"), load = try scene.load("a1")
        #expect(load.previous?.refreshToken == "new")
        scene.succeed(lost, with: .granted("late", by: "r2"))
        #expect(scene.discards.last == "a:  replaced", "\(scene.discards)")
        scene.succeed(load, with: .granted("a1 2", by: "newer"))
        #expect(caller.value?.value == "a1 2")
    }

    @Test func `46: a load that starts again with the new grant isn't cancelled at its limit`() throws {
        let (scene, first) = try scene()
        scene.perform("a2") { await $0.replace(with: .granted("a2 1", by: "new")) }
        scene.succeed(first, with: .granted("late", by: "r2"))
        let second = try scene.load("a1")
        #expect(second.previous?.refreshToken == "new")
        scene.advance(by: .seconds(30))
        let caller = scene.call("a1")
        #expect(!second.isCancelled && scene.loadCount("a1") == 2, "the next load waits for its turn")
        scene.succeed(second, with: .granted("a1 2", by: "newer"))
        #expect(caller.value?.value == "a1 2")
        #expect(try scene.load("a1").previous?.refreshToken == "newer")
    }

    @Test func `46: a lost load's late grant is kept if no other grant has come`() throws {
        let (scene, lost) = try scene()
        scene.advance(by: .seconds(120))
        scene.succeed(lost, with: .granted("late", by: "r2"))
        _ = scene.call("a2")
        #expect(try scene.load("a2").previous?.refreshToken == "r2")
        #expect(scene.services["a1"].cachedToken?.value == "late")
    }

    @Test func `46: a lost load's late grant is handed over if another load has brought a grant`() throws {
        let (scene, lost) = try scene()
        scene.advance(by: .seconds(120))
        _ = scene.call("a2")
        try scene.succeed("a2", with: .granted("a2 1", by: "r2"))
        scene.succeed(lost, with: .granted("late", by: "r3"))
        #expect(scene.discards.last == "a:  superseded", "\(scene.discards)")
        _ = scene.call("a1")
        #expect(try scene.load("a1").previous?.refreshToken == "r2")
    }

    @Test func `46: a load whose limit passed before its turn came spends nothing, and its key is free`() throws {
        let (scene, lost) = try scene()
        let late = scene.call("a2")
        scene.advance(by: .seconds(31))
        #expect(late.code == .loadTimedOut)
        scene.succeed(lost, with: .granted("a1 2", by: "r2"))
        #expect(scene.loadCount("a2") == 0)
        let caller = scene.call("a2")
        try scene.succeed("a2", with: .granted("a2 1", by: "r3"))
        #expect(caller.value?.value == "a2 1")
    }

    @Test func `46: a load whose limit passed before it had the new grant spends nothing, and its key is free`() throws {
        let scene = KeyScene(hasStores: true, grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        scene.advance(by: .seconds(3_600))
        _ = scene.call("a1")
        let first = try scene.load("a1")
        scene.advance(by: .seconds(27))
        // The new grant takes effect when the store has failed to save it in time.
        try #require(scene.stores?["a"]).hold()
        scene.perform("a2") { await $0.replace(with: .granted("a2 1", by: "new")) }
        scene.succeed(first, with: .granted("late", by: "r2"))
        scene.advance(by: .seconds(5))
        #expect(scene.loadCount("a1") == 1)
        let caller = scene.call("a1"), load = try scene.load("a1")
        #expect(load.previous?.refreshToken == "new" && scene.loadCount("a1") == 2)
        scene.succeed(load, with: .granted("a1 2", by: "newer"))
        scene.advance(by: .seconds(5))
        #expect(caller.value?.value == "a1 2")
    }

    @Test func `21: a sign-in takes the turn of a load that reads the grant, and no two loads present the new one`() throws {
        let scene = KeyScene(hasStores: true, grant: { String($0.prefix(1)) })
        let store = try #require(scene.stores?["a"])
        store.hold()
        let callers = ["a1", "a2"].map { scene.call($0) }
        scene.perform("a3") { await $0.replace(with: .granted("a3 1", by: "r1")) }
        store.release()
        scene.stage.run()
        let load = try scene.load("a2")
        #expect(load.previous?.refreshToken == "r1" && scene.loadCount("a1") == 0)
        scene.succeed(load, with: .granted("a2 1", by: "r2"))
        let next = try scene.load("a1")
        #expect(next.previous?.refreshToken == "r2")
        scene.succeed(next, with: .granted("a1 1", by: "r3"))
        #expect(callers.map { $0.value?.value } == ["a1 1", "a2 1"])
    }

    @Test func `46: with a clock that never wakes, the next load in line finds that the turn is over`() throws {
        var turns = GrantTurns()
        func enter(at now: Duration) -> (number: Int, start: SingleResult<Void>, next: SingleResult<Void>?) {
            turns.enter(at: now, by: 0, of: nil, as: .background)
        }
        let first = enter(at: .zero), second = enter(at: .zero)
        #expect(first.next === first.start && second.next == nil)
        let begins = turns.begin(first.number, until: .seconds(120))
        #expect(begins)
        #expect(enter(at: .seconds(120) - .milliseconds(1)).next == nil)
        #expect(enter(at: .seconds(120)).next === second.start)
        let begin = [first.number, second.number].map { turns.begin($0, until: .seconds(240)) }
        #expect(begin == [false, true])
    }

    @Test func `an access token without a refresh token that replaces a key's token takes no turn from that key's load`() throws {
        let (scene, running) = try scene()
        scene.perform("a1") { await $0.replace(with: .hour("given")) }
        _ = scene.call("a2")
        #expect(scene.loadCount("a2") == 0, "it would present the same refresh token")
        scene.succeed(running, with: .granted("a1 2", by: "r2"))
        #expect(try scene.load("a2").previous?.refreshToken == "r2")
    }
}
