import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 45: a program can finish")
struct DrainTests {
    private static func drain(_ scene: Scene, within limit: Duration = .seconds(10)) -> Stage.Player<Bool> {
        scene.stage.start { [service = scene.service] in await service.drain(within: limit).isComplete }
    }

    @Test func `45: drain returns at once when nothing is under way, and no load starts afterwards`() throws {
        let scene = try Scene.holding(.granted("a"))
        #expect(Self.drain(scene).value == true)
        scene.advance(by: .seconds(3_000))
        #expect(scene.call().value?.value == "a", "a valid token is handed out")
        scene.advance(by: .seconds(600))
        #expect(scene.call().code == .drained)
        #expect(scene.loader.loadCount == 1)
    }

    @Test func `45: drain waits for a refresh without callers and for the save of its token`() throws {
        let store = ScriptedStore()
        let scene = Scene(store: store)
        scene.replace(with: .granted("a"))
        scene.advance(by: .seconds(3_000))
        _ = scene.call()
        let refresh = try scene.load()
        let end = Self.drain(scene)
        store.hold()
        scene.succeed(refresh, with: .granted("b"))
        #expect(end.value == nil)
        scene.release(store)
        #expect(end.value == true && store.contents?.value == "b")
    }

    @Test func `45: during a drain, callers of the running load get its token, and later callers get an error`() throws {
        let scene = Scene()
        let caller = scene.call()
        let end = Self.drain(scene)
        let joined = scene.call()
        try scene.deliver(AccessToken("a", lifetime: .seconds(60)))
        #expect(caller.value?.value == "a" && joined.value?.value == "a" && end.value == true)
        scene.advance(by: .seconds(60))
        let error = scene.call().error as? TokenServiceError
        #expect(error?.code == .drained && error?.description.contains("resume()") == true)
    }

    @Test func `45: drain has a limit and reports what is still under way when it passes`() throws {
        let scene = Scene()
        _ = scene.call()
        let end = Self.drain(scene, within: .seconds(10))
        scene.advance(by: .seconds(9))
        #expect(!end.isDone)
        scene.advance(by: .seconds(1))
        #expect(end.value == false)
        let second = Self.drain(scene)
        #expect(Self.drain(scene, within: .zero).value == false)
        try scene.deliver(.hour("a"))
        #expect(second.value == true)
    }

    @Test func `45: drain waits for a load that has exceeded its limit, since it may still bring a grant`() throws {
        let scene = Scene()
        scene.replace(with: AccessToken("", lifetime: .zero, refreshToken: "r"))
        _ = scene.call()
        let load = try scene.load()
        scene.advance(by: .seconds(40))
        let end = Self.drain(scene)
        #expect(!end.isDone)
        scene.succeed(load, with: .granted("late"))
        #expect(end.value == true && scene.service.cachedToken?.value == "late")
    }

    @Test(arguments: [true, false])
    func `45: drain waits for a load that never ends only until that load is forgotten`(byReset: Bool) throws {
        let scene = Scene()
        scene.replace(with: AccessToken("", lifetime: .zero, refreshToken: "r"))
        _ = scene.call()
        if byReset { scene.reset() }
        scene.advance(by: .seconds(115))
        let cutShort = Self.drain(scene, within: .seconds(4)), end = Self.drain(scene)
        scene.advance(by: .seconds(4))
        #expect(cutShort.value == false && !end.isDone)
        scene.advance(by: .seconds(1))
        #expect(end.value == true && Self.drain(scene).value == true)
    }

    @Test func `45: during a drain a restore ends without starting a load`() throws {
        let store = ScriptedStore()
        store.hold()
        let scene = Scene(store: store)
        let caller = scene.call()
        let end = Self.drain(scene)
        scene.release(store)
        #expect(caller.code == .drained && end.value == true && scene.loader.loadCount == 0)
    }

    @Test func `45: a drained service still saves a sign-in and removes a sign-out, and starts no load`() throws {
        let store = ScriptedStore()
        let scene = Scene(store: store)
        #expect(Self.drain(scene).value == true)
        #expect(scene.signIn(with: AccessToken("", lifetime: .zero, refreshToken: "r")).value?.storeFailure == nil)
        #expect(store.contents?.refreshToken == "r" && scene.loader.loadCount == 0)
        #expect(scene.signOut().value?.discarded.first?.refreshToken == "r")
        #expect(store.contents == nil)
    }

    @Test func `45: a cancellation of drain's caller doesn't cut the drain short`() throws {
        let scene = Scene()
        _ = scene.call()
        let end = Self.drain(scene)
        end.cancel()
        scene.stage.run()
        #expect(!end.isDone)
        try scene.deliver(.hour("a"))
        #expect(end.value == true)
    }

    @Test func `a service loads again after resume`() throws {
        let scene = Scene()
        #expect(Self.drain(scene).value == true)
        scene.perform { await $0.resume() }
        _ = scene.call()
        try scene.deliver(.hour("a"))
        #expect(scene.service.cachedToken?.value == "a")
    }

    // MARK: Without a drain

    @Test func `45: in a program's first minute no refresh token is spent in the background`() throws {
        let scene = Scene()
        scene.replace(with: AccessToken("a", lifetime: .seconds(70), refreshToken: "r"))
        // The window opens after 45.5 s at the earliest and 47.25 s at the latest.
        scene.advance(by: .seconds(59))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 0)
        scene.advance(by: .seconds(1))
        #expect(scene.call().value?.value == "a")
        #expect(try scene.load().previous?.refreshToken == "r")
    }

    @Test func `45: in a program's first minute a grant passed to replace waits for the next caller`() throws {
        let scene = Scene()
        scene.replace(with: AccessToken("", lifetime: .zero, refreshToken: "r"))
        #expect(scene.loader.loadCount == 0)
        let caller = scene.call()
        #expect(try scene.load().previous?.refreshToken == "r" && !caller.isDone)
        let later = Scene()
        later.advance(by: .seconds(60))
        later.replace(with: AccessToken("", lifetime: .zero, refreshToken: "r"))
        #expect(later.loader.loadCount == 1)
    }

    @Test(arguments: [true, false])
    func `45: in a program's first minute a refresh ahead starts if it is repeatable or has no refresh token`(isRepeatable: Bool)
        throws
    {
        let token = AccessToken("a", lifetime: .seconds(60), refreshToken: isRepeatable ? "r" : nil)
        let scene = try Scene.holding(token, isRepeatable: isRepeatable)
        scene.advance(by: .seconds(50))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 2)
    }

    @Test func `45: a caller at hard expiry waits for the load that the first minute held back`() throws {
        let scene = Scene()
        scene.replace(with: AccessToken("a", lifetime: .seconds(40), refreshToken: "r"))
        scene.advance(by: .seconds(35))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 0)
        scene.advance(by: .seconds(1))
        let caller = scene.call()
        try scene.deliver(.granted("b"))
        #expect(caller.value?.value == "b")
    }

    @Test(arguments: [nil, Duration.seconds(600)])
    func `without a refresh window every load has a caller waiting for it`(wish: Duration?) throws {
        let scene = try Scene.holding(
            AccessToken("a", lifetime: .seconds(3_600), refreshIn: wish, refreshToken: "r"),
            policy: RefreshPolicy(maximumRefreshWindow: .zero))
        scene.advance(by: .seconds(3_539))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 1)
        scene.advance(by: .seconds(1))
        let caller = scene.call()
        try scene.deliver(.granted("b"))
        #expect(caller.value?.value == "b")
    }
}
