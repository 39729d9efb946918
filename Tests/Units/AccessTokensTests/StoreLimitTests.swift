import AccessTokens
import AccessTokensTesting
import Testing

@Suite("The store's limits: what ends late, or at the last moment")
struct StoreLimitTests {
    @Test func `a sign-in waits for a save that hangs no longer than 5 s`() {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        let signIn = scene.signIn(with: .hour("a"))
        scene.advance(by: .seconds(5) - .milliseconds(1))
        #expect(!signIn.isDone && scene.service.cachedToken == nil)
        scene.advance(by: .milliseconds(1))
        #expect(signIn.isDone && scene.service.cachedToken?.value == "a")
    }

    @Test func `a save that ends just before its limit has not failed`() {
        let stage = Stage(), manual = ManualClock(), store = ScriptedStore(), meanwhile = Meanwhile()
        let clock = OddClock(manual, onReading: meanwhile.read)
        let service = TokenService(store: store, environment: .driven(by: stage, clock: clock), loader: ScriptedLoader())
        let names = Log<TokenEvent.Name>(), events = service.events()
        store.hold()
        let signIn = stage.start { await service.replace(with: AccessToken("x", lifetime: .zero)) }
        // The timer has fired; before it has read the time, the save ends.
        meanwhile.atReading(1) {
            store.release()
            stage.run()
        }
        manual.advance(by: .seconds(5))
        stage.run()
        #expect(signIn.isDone && store.contents?.value == "x")
        let reader = stage.start { for await event in events { names.append(event.name) } }
        reader.cancel()
        stage.run()
        #expect(names.entries == [.replaced, .loadStarted])
    }

    // The load and its save are treated alike: see "arrives after hard expiry" in RefreshAheadTests.
    @Test func `a refresh whose save outlives both tokens has not failed, even if no caller came in between`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        try scene.deliver(.hour("a"))
        scene.advance(by: .seconds(3_538))
        _ = scene.call()
        let refresh = try scene.load(), events = scene.service.events()
        store.hold()
        scene.succeed(refresh, with: AccessToken("short", lifetime: .seconds(3)))
        // The old token has ended at 3,540 s; the new one is inside its leeway from 3,540.7 s on.
        scene.advance(by: .milliseconds(2_800))
        scene.release(store)
        #expect(scene.told(by: events).map(\.name) == [.loadSucceeded])
    }

    @Test func `callers who came while the store was read are counted with the load`() throws {
        let store = ScriptedStore(), scene = Scene(store: store), events = scene.service.events()
        store.hold()
        let waiting = scene.calls(2)
        scene.release(store)
        try scene.deliver(.hour("a"))
        #expect(waiting.allSatisfy { $0.value?.value == "a" })
        let told = scene.told(by: events)
        #expect(told.map(\.name) == [.loadStarted, .loadSucceeded])
        #expect(told.map(\.callers) == [2, 2])
    }

    @Test func `with a load limit below 5 s, a restore's error names the time that the restore had`() throws {
        let store = ScriptedStore(), scene = Scene(policy: RefreshPolicy(loadTimeout: .seconds(1)), store: store)
        store.hold()
        let caller = scene.call()
        scene.advance(by: .seconds(1))
        for caller in [caller, scene.call()] {
            #expect("\(caller.error as Any)".contains("The store did not answer within 1.0 seconds"))
        }
        let signIn = scene.signIn(with: .granted("a"))
        #expect("\(signIn.value?.storeFailure as Any)".contains("within 5.0 seconds") || !signIn.isDone)
    }

    @Test func `a token passed to replace that expires during its save becomes a grant, whose load answers the waiters`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        let signIn = scene.signIn(with: AccessToken("short", lifetime: .seconds(3), refreshToken: "r"))
        let caller = scene.call()
        scene.advance(by: .seconds(4))
        scene.release(store)
        #expect(signIn.value?.storeFailure == nil && !caller.isDone)
        let load = try scene.load()
        #expect(load.previous?.refreshToken == "r")
        scene.succeed(load, with: .hour("b"))
        #expect(caller.value?.value == "b")
    }
}
