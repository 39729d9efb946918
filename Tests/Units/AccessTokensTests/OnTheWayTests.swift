import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

/// A caller between the steps of a miss: to the actor, back with its place, and until it waits.
@Suite("Guarantees 2, 6 and 7, for callers on their way")
struct OnTheWayTests {
    let scene = Scene()

    /// Returns a caller that has found no token; after its next step it has its place and returns to wait.
    private func caller(within limit: Duration? = nil) -> Scene.Caller {
        scene.stage.startOnce { [service = scene.service] in try await service.retrieveToken(within: limit) }
    }

    @Test func `a caller cancelled on its way to the actor starts no load`() {
        let caller = caller()
        caller.cancel()
        scene.stage.run()
        #expect(caller.isCancelledWithError)
        #expect(scene.loader.loadCount == 0)
    }

    @Test func `a caller whose limit passes on its way to the actor starts no load`() {
        let caller = caller(within: .seconds(1))
        scene.clock.advance(by: .seconds(1))
        scene.stage.run()
        #expect(caller.code == .deadlineExceeded)
        #expect(scene.loader.loadCount == 0)
    }

    /// Runs what waits for the actor, after a sign-in by the program and what it did next.
    private func run(after fence: TokenService.Fence) -> Stage.Player<SessionChange> {
        scene.stage.start { [service = scene.service] in await service.finish(fence) }
    }

    @Test func `a waiting caller doesn't get a sign-in's token that was refused before the actor learnt of it`() throws {
        let caller = scene.call()
        _ = try scene.load()
        let fence = scene.service.put(.hour("given"))
        scene.service.refuse(.hour("given"))
        _ = run(after: fence)
        #expect(!caller.isDone)
        try scene.deliver(.hour("new"))
        #expect(caller.value?.value == "new")
    }

    /// A program may have kept the token of an earlier run's session, as interceptors do.
    @Test(arguments: [true, false])
    func `52: a caller after a refusal doesn't get the refused token from the store`(isStored: Bool) throws {
        let stored = StoredToken(.granted("a"), received: Date(timeIntervalSince1970: 0))
        let scene = Scene(store: ScriptedStore(isStored ? stored : nil))
        scene.service.refuse(.granted("a"), isToResend: true)
        let caller = scene.call()
        let load = try scene.load()
        #expect(load.previous?.refreshToken == (isStored ? "a's grant" : nil))
        scene.succeed(load, with: .hour("b"))
        #expect(caller.value?.value == "b")
    }

    @Test func `43: a refusal of an earlier user's request isn't remembered for the next user`() throws {
        scene.replace(with: .hour("a"))
        scene.reset()
        scene.service.refuse(.hour("a"), isToResend: true)
        let caller = scene.call()
        try scene.deliver(.hour("a"))
        #expect(caller.value?.value == "a")
    }

    @Test func `52: a sign-in that the actor learns of late still has the full time for its load`() throws {
        let caller = scene.call()
        _ = try scene.load()
        let fence = scene.service.put(AccessToken("expired", lifetime: .zero, refreshToken: "r"))
        scene.clock.advance(by: .seconds(31))
        _ = run(after: fence)
        #expect(!caller.isDone)
        let load = try scene.load()
        #expect(load.previous?.refreshToken == "r")
        scene.succeed(load, with: .hour("new"))
        #expect(caller.value?.value == "new")
    }

    @Test(arguments: [true, false])
    func `52: a fence that the actor learns of late still has the full time for the store`(isSignIn: Bool) throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        let fence = isSignIn ? scene.service.put(.hour("given")) : scene.service.signOut()
        scene.clock.advance(by: .seconds(6))
        let change = scene.stage.start { [service = scene.service] in await service.finish(fence) }
        #expect(!change.isDone)
        scene.release(store)
        #expect(change.value.map { $0.storeFailure == nil } ?? false)
        if isSignIn { #expect(scene.service.cachedToken?.value == "given") }
    }

    @Test func `a sign-in's token that expires before the actor learns of it is only a grant`() throws {
        let caller = scene.call()
        _ = try scene.load()
        let fence = scene.service.put(AccessToken("given", lifetime: .seconds(10), refreshToken: "r"))
        scene.clock.advance(by: .seconds(10))
        _ = run(after: fence)
        #expect(!caller.isDone)
        let load = try scene.load()
        #expect(load.previous?.refreshToken == "r")
    }

    @Test func `a caller cancelled before it suspends leaves alone`() throws {
        let leaver = caller(), other = caller()
        scene.stage.runOnce()
        leaver.cancel()
        scene.stage.run()
        #expect(leaver.isCancelledWithError && !other.isDone)
        try scene.deliver(.hour("a"))
        #expect(other.value?.value == "a")
    }

    @Test func `a caller answered before it suspends gets that answer, and not a later one`() async {
        let caller = caller()
        scene.stage.runOnce()
        await scene.service.replace(with: .hour("given"))
        await scene.service.replace(with: .hour("later"))
        #expect(!caller.isDone)
        scene.stage.run()
        #expect(caller.value?.value == "given")
    }

    @Test func `a caller signed out before it suspends gets the reset error`() async throws {
        let caller = caller()
        scene.stage.runOnce()
        _ = await scene.service.reset()
        await scene.service.replace(with: .hour("the next user's"))
        scene.stage.run()
        #expect(caller.code == .reset)
    }

    @Test func `a caller answered and then cancelled before it suspends keeps its answer`() async {
        let caller = caller()
        scene.stage.runOnce()
        await scene.service.replace(with: .hour("given"))
        caller.cancel()
        scene.stage.run()
        #expect(caller.value?.value == "given")
    }

    @Test func `a caller that arrives cancelled or out of time isn't counted among those who joined`() throws {
        let events = scene.service.events()
        _ = scene.calls(3)
        _ = scene.stage.startCancelled { [service = scene.service] in try await service.retrieveToken() }
        _ = scene.call(within: .zero)
        try scene.deliver(.hour("a"))
        #expect(scene.told(by: events).map(\.callers) == [1, 3])
    }
}
