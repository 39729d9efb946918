import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantee 50: a token that was issued is saved in the end")
struct UnsavedTests {
    /// Returns a service with a token that its store refused to save.
    private func unsaved() throws -> (Scene, ScriptedStore) {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.fail(.save, .remove)
        _ = scene.call()
        try scene.deliver(.granted("a"))
        #expect(store.log == ["load", "save a"])
        return (scene, store)
    }

    @Test func `50: hits save it again after pauses that double to a minute, until the store has it`() throws {
        let (scene, store) = try unsaved()
        var saves = 1
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            scene.advance(by: .seconds(seconds) - .milliseconds(1))
            #expect(scene.call().value?.value == "a" && store.log.count == saves + 1)
            scene.advance(by: .milliseconds(1))
            #expect(scene.call().value?.value == "a")
            saves += 1
            #expect(store.log.count == saves + 1)
        }
        store.fail()
        scene.advance(by: .seconds(60))
        _ = scene.call()
        #expect(store.contents?.value == "a" && store.log.count == saves + 2)
        scene.advance(by: .seconds(600))
        _ = scene.call()
        #expect(store.log.count == saves + 2, "what is saved isn't saved again")
    }

    @Test func `50: retryNow() saves it at once`() throws {
        let (scene, store) = try unsaved()
        store.fail()
        scene.retryNow()
        #expect(store.contents?.value == "a")
    }

    @Test(arguments: [true, false]) func `50: a fence writes nothing of the session that it ends`(isSignOut: Bool) throws {
        let (scene, store) = try unsaved()
        store.fail()
        scene.advance(by: .seconds(2))
        if isSignOut { scene.reset() } else { scene.replace(with: .granted("b")) }
        #expect(store.log.filter { $0 == "save a" }.count == 1 && store.contents?.value == (isSignOut ? nil : "b"))
    }

    @Test(arguments: [true, false]) func `50: drain saves it as soon as the store can, or says what it couldn't save`(heals: Bool)
        throws
    {
        let (scene, store) = try unsaved()
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(10)) }
        #expect(!end.isDone && store.log == ["load", "save a", "save a"])
        if heals { store.fail() }
        scene.advance(by: .seconds(2))
        #expect(end.value?.isComplete == (heals ? true : nil) && store.contents?.value == (heals ? "a" : nil))
        scene.advance(by: .seconds(8))
        let result = try #require(end.value)
        #expect(result.hasEnded && result.isComplete == heals && result.unsaved.count == (heals ? 0 : 1))
        #expect(result.unsaved.allSatisfy { $0.token?.value == "a" && $0.error?.underlying is ScriptedStore.Failure })
    }

    @Test func `50: drain names the save that still runs when its limit passes`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        store.hold()
        try scene.deliver(.granted("a"))
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(1)) }
        scene.advance(by: .seconds(1))
        let result = try #require(end.value)
        #expect(!result.hasEnded && result.unsaved.first?.token?.value == "a" && result.unsaved.first?.error == nil)
        store.release()
        scene.stage.run()
    }

    @Test func `50: drain names a sign-out whose removal has failed`() throws {
        let (scene, _) = try unsaved()
        scene.reset()
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .zero) }
        scene.stage.run()
        let result = try #require(end.value)
        #expect(result.unsaved.count == 1 && result.unsaved[0].token == nil && !result.isComplete)
    }

    @Test func `50: until then no refresh ahead spends the refresh token, and the load at hard expiry says so`() throws {
        let (scene, store) = try unsaved()
        let events = scene.service.events()
        scene.advance(by: .seconds(3_000))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 1, "in the soft window")
        scene.advance(by: .seconds(600))
        let caller = scene.call()
        let start = try #require(scene.told(by: events).first { $0.name == .loadStarted })
        #expect(start.error?.underlying is ScriptedStore.Failure)
        store.fail()
        try scene.deliver(.granted("b"))
        #expect(caller.value?.value == "b" && store.contents?.value == "b")
        scene.advance(by: .seconds(3_000))
        _ = scene.call()
        #expect(scene.loader.loadCount == 3, "the store has caught up")
    }

    @Test func `50: a sign-out has the last word, and its removal is repeated as well`() throws {
        let (scene, store) = try unsaved()
        scene.reset()
        #expect(store.log.suffix(2) == ["load", "remove"])
        store.fail()
        scene.advance(by: .seconds(10))
        let caller = scene.call()
        #expect(store.log.suffix(1) == ["remove"])
        scene.advance(by: .seconds(10))
        try scene.deliver(.granted("b"))
        #expect(caller.value?.value == "b" && store.log.suffix(2) == ["remove", "save b"])
    }
}
