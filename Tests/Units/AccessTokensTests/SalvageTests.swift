import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@Suite("A load that fails after the server has replaced the refresh token")
struct SalvageTests {
    private static func salvage(_ reason: any Error = ScriptedFailure.transient) -> SalvagedGrant {
        SalvagedGrant(AccessToken("", lifetime: .zero, refreshToken: "SECRET new"), reason: reason)
    }

    @Test func `a salvaged grant is kept, saved and used by the next load; callers and events get only the reason`() throws {
        let store = ScriptedStore(), scene = Scene(store: store), events = scene.service.events()
        let caller = scene.call()
        scene.fail(try scene.load(), with: Self.salvage())
        #expect((caller.error as? TokenServiceError)?.underlying as? ScriptedFailure == .transient)
        let told = scene.told(by: events)
        #expect(told.map(\.name) == [.loadStarted, .loadFailed])
        #expect(secrets(in: [caller.error as Any, told, scene.call().error as Any]).isEmpty)
        #expect(store.contents?.refreshToken == "SECRET new")
        scene.advance(by: .seconds(60))
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "SECRET new")
    }

    @Test func `4: the pause after a salvaged grant is the longest, unless the server names one`() throws {
        for (wish, pause) in [(nil, 60.0), (Duration.seconds(5), 5), (.seconds(600), 600), (.zero, 60)] {
            let scene = Scene(), caller = scene.call()
            scene.fail(try scene.load(), with: Self.salvage(ScriptedFailure(retryAfter: wish)))
            #expect(caller.retryAt == pause)
            scene.retryNow()
            _ = scene.call()
            #expect(scene.loader.loadCount == 2)
        }
    }

    @Test(arguments: [(nil, 300), (Duration.seconds(5), 5), (.seconds(400), 400)])
    func `the pause after a salvaged grant in the soft window is the longest, unless the server names one`(
        wish: Duration?, pause: Int
    ) throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(2_800))
        _ = scene.call()
        scene.fail(try scene.load(), with: Self.salvage(ScriptedFailure(retryAfter: wish)))
        scene.advance(by: .seconds(pause - 1))
        _ = scene.call()
        #expect(scene.loader.loadCount == 2)
        scene.advance(by: .seconds(76))
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "SECRET new")
    }

    @Test func `a refused grant stays refused when it comes with a salvaged one, which a sign-out hands over`() throws {
        let scene = Scene(), caller = scene.call()
        scene.fail(try scene.load(), with: Self.salvage(ScriptedFailure.grantRefused))
        #expect((caller.error as? TokenServiceError)?.remedy == .signIn)
        scene.advance(by: .seconds(10_000))
        #expect(scene.call().code == .loadFailed && scene.loader.loadCount == 1)
        #expect(scene.signOut().value?.discarded.map(\.refreshToken) == ["SECRET new"])
    }

    @Test func `a grant salvaged after a sign-out is handed over and not remembered`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        let load = try scene.load()
        scene.reset()
        scene.fail(load, with: Self.salvage())
        #expect(scene.discards == [" signedOut"] && store.contents == nil)
        _ = scene.call()
        #expect(try scene.load().previous == nil)
    }

    @Test func `a grant salvaged after a time-out is kept, and the next load waits for its pause`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        let stuck = try scene.load()
        scene.advance(by: .seconds(31))
        scene.fail(stuck, with: Self.salvage())
        #expect(store.contents?.refreshToken == "SECRET new")
        #expect(scene.call().retryAt == 91)
        scene.advance(by: .seconds(60))
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "SECRET new")
    }

    @Test(arguments: [true, false])
    func `a grant salvaged beside a younger load is kept if that load fails, and handed over otherwise`(youngerFails: Bool) throws
    {
        let store = ScriptedStore(), scene = Scene(isRepeatable: true, store: store)
        _ = scene.call()
        let old = try scene.load()
        scene.advance(by: .seconds(30))
        _ = scene.call()
        let young = try scene.load()
        scene.fail(old, with: SalvagedGrant(.granted("salvaged"), reason: ScriptedFailure.transient))
        if youngerFails {
            scene.fail(young)
            scene.retryNow()
            _ = scene.call()
            #expect(try scene.load().previous?.value == "salvaged")
            #expect(scene.discards.isEmpty && store.contents?.value == "salvaged")
        } else {
            scene.succeed(young, with: .granted("young"))
            #expect(scene.discards == ["salvaged superseded"] && store.contents?.value == "young")
        }
    }

    @Test func `a salvaged grant that was saved is restored as a grant, and never handed out as a token`() throws {
        let stored = StoredToken(Self.salvage().grant, received: Date(timeIntervalSince1970: 0))
        let scene = Scene(store: ScriptedStore(stored))
        let caller = scene.call()
        #expect(try scene.load().previous?.refreshToken == "SECRET new" && !caller.isDone)
    }

    @Test func `the reason inside nested salvaged grants is still found, and no text shows a grant`() throws {
        let nested = SalvagedGrant(.secret("outer"), reason: Self.salvage())
        let scene = Scene(), caller = scene.call()
        scene.fail(try scene.load(), with: nested)
        #expect((caller.error as? TokenServiceError)?.underlying is ScriptedFailure)
        var dumped = ""
        dump(nested, to: &dumped)
        for text in ["\(nested)", String(reflecting: nested), dumped] { #expect(!text.contains("SECRET")) }
        #expect(nested.remedy == .retry && nested.logCode == ScriptedFailure.transient.message && nested.retryAfter == nil)
    }
}
