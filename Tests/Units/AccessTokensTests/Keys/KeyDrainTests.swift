import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Testing

@Suite("Guarantee 45: a program with many keys can finish")
struct KeyDrainTests {
    private static func drain(_ scene: KeyScene, within limit: Duration = .seconds(10)) -> Stage.Player<Bool> {
        scene.stage.start { [services = scene.services] in await services.drain(within: limit) }
    }

    @Test func `45: it waits for every key's load, and no key loads afterwards, be its service made later`() throws {
        let scene = KeyScene()
        _ = scene.call("a")
        _ = scene.call("b")
        let end = Self.drain(scene)
        try scene.succeed("a", with: .hour("a"))
        #expect(!end.isDone)
        try scene.succeed("b", with: .hour("b"))
        #expect(end.value == true)
        #expect(scene.call("a").value?.value == "a")
        #expect(scene.call("c").code == .drained && scene.loadCount("c") == 0)
        _ = scene.stage.start { [services = scene.services] in await services.resume() }
        _ = scene.call("c")
        _ = scene.call("d")
        #expect(scene.loadCount("c") == 1 && scene.loadCount("d") == 1)
    }

    @Test func `45: one limit holds for all keys`() throws {
        let scene = KeyScene()
        for key in ["a", "b", "c"] { _ = scene.call(key) }
        let end = Self.drain(scene, within: .seconds(10))
        scene.advance(by: .seconds(10))
        #expect(end.value == false)
    }

    @Test func `45: keys that share a refresh token have saved it by then`() throws {
        let scene = KeyScene(hasStores: true, grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        scene.advance(by: .seconds(3_600))
        _ = scene.call("a1")
        let load = try scene.load("a1")
        let end = Self.drain(scene)
        let store = try #require(scene.stores?["a"])
        store.hold()
        scene.succeed(load, with: .granted("a1 2", by: "r2"))
        #expect(!end.isDone)
        store.release()
        scene.stage.run()
        #expect(end.value == true && store.contents?.refreshToken == "r2")
    }

    @Test(arguments: [true, false])
    func `45: a load that waits for another key's begins only if a caller waits for it`(isAwaited: Bool) throws {
        let scene = KeyScene(grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        scene.advance(by: .seconds(3_600))
        _ = scene.call("a1")
        let load = try scene.load("a1"), caller = scene.call("a2")
        if !isAwaited {
            caller.cancel()
            scene.stage.run()
        }
        let end = Self.drain(scene)
        scene.succeed(load, with: .granted("a1 2", by: "r2"))
        #expect(scene.loadCount("a2") == (isAwaited ? 1 : 0))
        if isAwaited { try scene.succeed("a2", with: .granted("a2 1", by: "r3")) }
        #expect(end.value == true)
        guard !isAwaited else { return }
        #expect(scene.call("a2").code == .drained)
        _ = scene.stage.start { [services = scene.services] in await services.resume() }
        _ = scene.call("a2")
        #expect(try scene.load("a2").previous?.refreshToken == "r2")
    }

    @Test func `19: a load that every caller has left and that doesn't begin is told to end`() throws {
        let scene = KeyScene(grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        scene.advance(by: .seconds(3_600))
        _ = scene.call("a1")
        let load = try scene.load("a1"), log = Log<String>()
        let reader = scene.stage.start { [service = scene.services["a2"]] in
            for await event in service.events() { log.append("\(event.name) \(event.load ?? 0)") }
        }
        let caller = scene.call("a2")
        caller.cancel()
        _ = Self.drain(scene)
        scene.succeed(load, with: .granted("a1 2", by: "r2"))
        reader.cancel()
        scene.stage.run()
        #expect(log.entries == ["loadStarted 1", "loadDropped 1"])
    }

    @Test func `45: a sign-in that no caller awaits reaches the store that keys share`() throws {
        let scene = KeyScene(hasStores: true, grant: { String($0.prefix(1)) })
        let store = try #require(scene.stores?["a"])
        store.hold()
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        let end = Self.drain(scene)
        #expect(!end.isDone)
        store.release()
        scene.stage.run()
        #expect(end.value == true && store.contents?.refreshToken == "r1")
    }

    @Test func `45: a key of a shared grant spends nothing in the background while the program is young`() throws {
        let scene = KeyScene(grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: AccessToken("a1 1", lifetime: .seconds(60), refreshToken: "r1")) }
        scene.advance(by: .seconds(50))
        #expect(scene.call("a1").value?.value == "a1 1" && scene.loadCount("a1") == 0)
    }
}
