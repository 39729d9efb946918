import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@Suite("An empty string is no access token")
struct EmptyTokenTests {
    @Test(arguments: [true, false])
    func `an empty access token from a loader is an error that says so, and is never handed out`(hasStore: Bool) throws {
        let scene = Scene(store: hasStore ? ScriptedStore() : nil), waiting = scene.calls(2)
        try scene.deliver(AccessToken("", lifetime: .seconds(3_600)))
        #expect(waiting.allSatisfy { $0.code == .loadFailed })
        #expect("\(waiting[0].error as Any)".contains("an empty access token"))
        #expect(scene.service.cachedToken == nil && scene.call().isDone == false)
        #expect(scene.loader.loadCount == 2, "another try")
    }

    @Test func `an empty access token's refresh token is kept and saved`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        try scene.deliver(AccessToken("", lifetime: .seconds(3_600), refreshToken: "new"))
        #expect(store.contents?.refreshToken == "new")
        scene.advance(by: RefreshPolicy.longestPause)
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "new")
    }

    @Test func `an empty access token without a refresh token replaces no grant, in memory or in the store`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        scene.replace(with: .granted("a"))
        scene.invalidate(.granted("a"))
        _ = scene.call()
        try scene.deliver(AccessToken(""))
        #expect(store.contents?.refreshToken == "a's grant" && scene.discards.isEmpty)
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "a's grant")
    }

    @Test func `an empty access token during a refresh is a failed refresh, and the good token stays`() throws {
        let scene = try Scene.holding(.hour("a")), events = scene.service.events()
        scene.advance(by: .seconds(3_000))
        _ = scene.call()
        try scene.deliver(AccessToken("", lifetime: .seconds(3_600)))
        #expect(scene.call().value?.value == "a")
        #expect(scene.told(by: events).map(\.name) == [.refreshStarted, .refreshFailed])
    }

    @Test(arguments: [nil, Duration.seconds(3_600)])
    func `an empty access token from a store counts only as a grant`(lifetime: Duration?) throws {
        let token = AccessToken("", lifetime: lifetime, refreshToken: "r")
        let scene = Scene(store: ScriptedStore(StoredToken(token, received: Date(timeIntervalSince1970: 0))))
        let caller = scene.call()
        #expect(try scene.load().previous?.refreshToken == "r" && !caller.isDone)
    }

    @Test(arguments: [true, false])
    func `an empty access token passed to replace counts only as a grant`(hasStore: Bool) throws {
        let store = hasStore ? ScriptedStore() : nil, scene = Scene(store: store)
        scene.replace(with: AccessToken("", refreshToken: "r"))
        #expect(scene.service.cachedToken == nil && (store == nil || store?.contents?.refreshToken == "r"))
        let caller = scene.call(), load = try scene.load()
        #expect(load.previous?.refreshToken == "r")
        scene.succeed(load, with: .hour("a"))
        #expect(caller.value?.value == "a")
    }
}
