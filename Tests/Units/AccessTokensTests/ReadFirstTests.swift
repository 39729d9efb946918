import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 57: no service spends a refresh token that another has replaced in its store")
struct ReadFirstTests {
    private let store = ScriptedStore()

    /// Returns a service whose token `a` is in the store and, after an hour, has expired.
    private func expired(isRepeatable: Bool = false) throws -> Scene {
        let scene = Scene(isRepeatable: isRepeatable, store: store)
        _ = scene.call()
        try scene.deliver(.granted("a"))
        scene.advance(by: .seconds(3_600))
        #expect(store.log == ["load", "save a"])
        return scene
    }

    /// Another service saves its token, or signs out.
    private func change(_ scene: Scene, to token: AccessToken?) {
        let received = Date(timeIntervalSince1970: ManualClock().now.duration(to: scene.clock.now) / .seconds(1))
        _ = scene.stage.start { [store] in
            if let token { try await store.save(StoredToken(token, received: received)) } else { try await store.remove() }
        }
    }

    @Test func `57: what another service has saved is adopted as a new session, and nothing is spent`() throws {
        let scene = try expired(), events = scene.service.events()
        change(scene, to: .granted("x"))
        #expect(scene.call().code == .reset, "the other service may have signed in another user")
        #expect(scene.call().value?.value == "x" && scene.loader.loadCount == 1)
        let told = scene.told(by: events)
        #expect(told.map(\.name) == [.storeFailed, .reset, .restored])
        #expect("\(told[0].error as Any)".contains("SharedFileTokenStore") && told[0].error?.remedy == .programChange)
        #expect(scene.discards.isEmpty, "the other service has spent the grant, or has told of it")
        scene.advance(by: .seconds(3_600))
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "x's grant")
    }

    @Test func `57: a refused request of the session before isn't sent again with an adopted token`() throws {
        let scene = try expired()
        change(scene, to: .granted("x"))
        _ = scene.call()
        let resent = scene.stage.start { [service = scene.service] in
            try await service.retrieveToken(insteadOf: .granted("a"))
        }
        #expect(resent.code == .reset)
    }

    @Test func `57: an empty store says that the user has signed out`() throws {
        let scene = try expired()
        change(scene, to: nil)
        #expect(scene.call().code == .reset)
        let state = scene.stage.start { [service = scene.service] in await service.signInState() }
        #expect(state.value?.code == .signedOut)
        _ = scene.call()
        #expect(try scene.load().previous == nil)
    }

    @Test func `57: after an empty store, the next caller finds what another service has saved since`() throws {
        let scene = try expired()
        change(scene, to: nil)
        #expect(scene.call().code == .reset)
        change(scene, to: .granted("x"))
        #expect(scene.call().value?.value == "x" && scene.loader.loadCount == 1)
    }

    @Test func `57: another refresh token of the same access token is adopted`() throws {
        let scene = try expired()
        change(scene, to: .granted("a", by: "another grant"))
        #expect(scene.call().code == .reset && scene.call().value?.refreshToken == "another grant")
        #expect(scene.loader.loadCount == 1)
    }

    @Test func `57: a silent store leaves half of a short limit to the load`() throws {
        let scene = Scene(policy: RefreshPolicy(loadTimeout: .seconds(4)), store: store)
        _ = scene.call()
        try scene.deliver(.granted("a"))
        scene.advance(by: .seconds(3_600))
        store.hold()
        let caller = scene.call()
        scene.advance(by: .seconds(2))
        let load = try scene.load()
        scene.advance(by: .seconds(1))
        scene.release(store)
        scene.succeed(load, with: .granted("b"))
        #expect(caller.value?.value == "b")
    }

    @Test func `57: a refresh ahead reads first, too, and its callers get the adopted token from then on`() throws {
        let scene = Scene(store: store)
        _ = scene.call()
        try scene.deliver(.granted("a"))
        scene.advance(by: .seconds(3_000))
        change(scene, to: .granted("x"))
        #expect(scene.call().value?.value == "a" && scene.call().value?.value == "x" && scene.loader.loadCount == 1)
    }

    @Test func `57: a load follows at once if the store has what the service knows`() throws {
        let scene = try expired(), caller = scene.call()
        try scene.deliver(.granted("b"))
        #expect(caller.value?.value == "b" && store.log == ["load", "save a", "load", "save b"])
        scene.advance(by: .seconds(3_000))
        #expect(scene.call().value?.value == "b")
        try scene.deliver(.granted("c"))
        #expect(scene.call().value?.value == "c" && store.log.suffix(2) == ["load", "save c"])
        change(scene, to: .granted("b"))
        scene.advance(by: .seconds(3_600))
        _ = scene.call()
        #expect(try scene.load().previous?.value == "c", "a copy from before is no other service's")
    }

    @Test func `57: a store that can't be read stops no load, and an event has its error`() throws {
        let scene = try expired(), events = scene.service.events()
        store.fail(.load)
        let caller = scene.call()
        try scene.deliver(.granted("b"))
        #expect(caller.value?.value == "b" && store.contents?.value == "b")
        #expect(scene.told(by: events).map(\.name) == [.storeFailed, .loadStarted, .loadSucceeded])
    }

    @Test(arguments: [true, false]) func `57: a silent store costs a load five seconds, and its late answer changes nothing`(
        hasOther: Bool
    ) throws {
        let scene = try expired()
        if hasOther { change(scene, to: .granted("x")) }
        store.hold()
        let caller = scene.call()
        scene.advance(by: .seconds(5) - .milliseconds(1))
        #expect(scene.loader.loadCount == 1)
        scene.advance(by: .milliseconds(1))
        #expect(scene.loader.loadCount == 2)
        let load = try scene.load()
        scene.release(store)
        scene.succeed(load, with: .granted("b"))
        #expect(caller.value?.value == "b" && store.contents?.value == "b")
    }

    @Test(arguments: [true, false])
    func `57: what a forgotten load brings during the read is handed over if another service has changed the store`(
        isSignedOut: Bool
    ) throws {
        let scene = try expired()
        _ = scene.call()
        let forgotten = try scene.load()
        scene.advance(by: .seconds(120))
        change(scene, to: isSignedOut ? nil : .granted("x"))
        store.hold()
        let caller = scene.call()
        scene.succeed(forgotten, with: .granted("late"))
        scene.release(store)
        #expect(caller.code == .reset && scene.discards == ["late superseded"])
        #expect(store.contents?.value == (isSignedOut ? nil : "x"))
    }

    @Test func `57: a load that may be repeated, and one without a refresh token, read nothing more`() throws {
        let scene = try expired(isRepeatable: true)
        _ = scene.call()
        try scene.deliver(.hour("b"))
        #expect(store.log == ["load", "save a", "save b"])
        let other = ScriptedStore(), bare = Scene(store: other)
        for name in ["a", "b"] {
            _ = bare.call()
            try bare.deliver(.hour(name))
            bare.advance(by: .seconds(3_600))
        }
        #expect(other.log == ["load", "save a", "save b"])
    }

    @Test func `57: while a save of its own is pending the service reads nothing, and saves`() throws {
        let scene = Scene(store: store)
        store.fail(.save)
        _ = scene.call()
        try scene.deliver(.granted("a"))
        scene.advance(by: .seconds(3_600))
        _ = scene.call()
        #expect(store.log == ["load", "save a", "save a"] && scene.loader.loadCount == 2)
    }

    @Test func `57: a sign-out during the read has the last word`() throws {
        let scene = try expired()
        change(scene, to: .granted("x"))
        store.hold()
        let caller = scene.call(), change = scene.signOut()
        #expect(caller.code == .reset)
        scene.release(store)
        #expect(change.isDone && store.contents == nil && scene.loader.loadCount == 1)
    }

    @Test func `57: a drained service begins no load after its read`() throws {
        let scene = try expired()
        store.hold()
        let caller = scene.call()
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(10)) }
        scene.release(store)
        #expect(caller.code == .drained && end.value?.isComplete == true && scene.loader.loadCount == 1)
    }

    @Test func `57: a call that asks for a longer life joins the read and the load after it`() throws {
        let scene = Scene(store: store)
        _ = scene.call()
        try scene.deliver(.granted("a"))
        scene.advance(by: .seconds(3_000))
        store.hold()
        #expect(scene.call().value?.value == "a")
        let caller = scene.stage.start { [service = scene.service] in
            try await service.retrieveToken(validFor: .seconds(1_000))
        }
        #expect(!caller.isDone)
        scene.release(store)
        try scene.deliver(.granted("b"))
        #expect(caller.value?.value == "b" && scene.loader.loadCount == 2)
    }

    @Test func `57: two services over one store take turns for a day, and none presents what the other has spent`() throws {
        let scenes = [Scene(store: store), Scene(store: store)]
        var spent: [String?] = []
        for hour in 0..<24 {
            let scene = scenes[hour % 2]
            if scene.call().code == .reset { _ = scene.call() }
            let load = try scene.load()
            spent.append(load.previous?.refreshToken)
            scene.succeed(load, with: .granted("\(hour)"))
            for scene in scenes { scene.advance(by: .seconds(3_700)) }
        }
        #expect(Set(spent).count == 24)
    }
}
