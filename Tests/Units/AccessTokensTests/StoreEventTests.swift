import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Guarantees 6, 18 and 19: what the store's events say, and to whom")
struct StoreEventTests {
    @Test(arguments: ["fails", "fails after the next sign-in", "is late", "fails late"])
    func `19: a removal that fails or is late tells the next user's subscribers nothing of the last user`(kind: String) throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        try scene.deliver(.secret("last"))
        let events = scene.service.events()
        if kind != "fails" { store.hold() }
        if kind != "is late" { store.fail(.remove) }
        let signOut = scene.signOut()
        // The next user signs in while the last one's token is still being removed.
        let signIn = scene.signIn(with: AccessToken("next", lifetime: .seconds(60)))
        let nextUsers = scene.service.events()
        if kind.hasSuffix("late") { scene.advance(by: .seconds(5)) }
        scene.release(store)
        let told = scene.told(by: events), toldNext = scene.told(by: nextUsers)
        let ofRemoval = told.filter { $0.name == .storeFailed && $0.error?.underlying is ScriptedStore.Failure }
        #expect(ofRemoval.map(\.generation) == (kind == "fails" ? [1] : []), "later only the sign-out's caller hears of it")
        for events in [told, toldNext] {
            #expect(zip(events, events.dropFirst()).allSatisfy { $0.generation <= $1.generation }, "generations never go back")
        }
        #expect(!toldNext.contains { $0.generation < 2 }, "a stream that begins after a fence tells of nothing before it")
        #expect(secrets(in: told).isEmpty && secrets(in: toldNext).isEmpty)
        #expect(secrets(in: signOut.value?.storeFailure as Any).isEmpty && signOut.value?.storeFailure != nil)
        #expect(signOut.value?.discarded.map(\.value) == ["SECRET access last"])
        #expect(secrets(in: signIn.value as Any) == [])
    }

    @Test func `the tests' search for secrets finds one wherever it is nested`() {
        struct Wrapped: Error { let inside: [String: any Sendable] }
        let wrapped = TokenServiceError(.loadFailed, underlying: Wrapped(inside: ["a": Optional(AccessToken.secret())]))
        #expect(secrets(in: [wrapped]) == ["SECRET access "])
        #expect(secrets(in: SalvagedGrant(.secret("x"), reason: wrapped)).count == 2)
    }

    @Test(arguments: ["reset", "replace"], [true, false])
    func `after a fence, no event tells what became of a save that the fence cut off`(fence: String, hangs: Bool) throws {
        for kind in ["loaded", "given", "expired"] {
            let store = ScriptedStore(), scene = Scene(store: store)
            _ = scene.call()
            store.hold()
            switch kind {
            case "loaded": try scene.deliver(.granted("a"))
            case "given": _ = scene.signIn(with: .granted("a"))
            default: _ = scene.signIn(with: AccessToken("a", lifetime: .zero))
            }
            store.fail(.save)
            if fence == "reset" { scene.reset() } else { scene.replace(with: AccessToken("b", lifetime: .zero)) }
            let events = scene.service.events()
            if hangs { scene.advance(by: .seconds(5)) }
            scene.release(store)
            // The fence's own operation is late when the save before it hangs, and a replacement's own save fails.
            let own = (hangs ? 1 : 0) + (fence == "replace" ? 1 : 0)
            #expect(scene.told(by: events).count { $0.name == .storeFailed } == own, "\(kind)")
        }
    }

    @Test func `loads are counted from 1 and without gaps, whatever the store does between them`() throws {
        let store = ScriptedStore(), scene = Scene(store: store), events = scene.service.events()
        store.fail(.load)
        _ = scene.call()
        store.fail()
        _ = scene.call()
        scene.invalidate(try scene.deliver(.hour("a")))
        scene.replace(with: .hour("b"))
        scene.invalidate(.hour("b"))
        _ = scene.call()
        try scene.deliver(.hour("c"))
        let told = scene.told(by: events)
        #expect(
            told.map(\.name) == [
                .storeFailed, .loadStarted, .loadSucceeded, .invalidated, .replaced, .invalidated, .loadStarted, .loadSucceeded,
            ])
        #expect(told.map(\.load) == [nil, 1, 1, nil, nil, nil, 2, 2])
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity])
    func `a stored token without a date causes an error and no load, until a sign-in replaces it`(
        date: Double
    ) {
        let received = Date(timeIntervalSinceReferenceDate: date)
        let store = ScriptedStore(StoredToken(.granted("a"), received: received)), scene = Scene(store: store)
        let caller = scene.call()
        #expect(caller.code == .storeFailed && scene.loader.loadCount == 0)
        let error = caller.error as? TokenServiceError
        #expect(error?.description.contains("the store is damaged") == true && error?.remedy == .signIn)
        scene.advance(by: .seconds(1_000_000))
        #expect(scene.call().code == .storeFailed && store.log == ["load"], "asked no more: it would say the same")
        scene.replace(with: .granted("b"))
        #expect(store.contents?.value == "b" && scene.call().value?.value == "b")
        #expect(scene.discards == ["a replaced"], "its grant is good all the same")
    }

    @Test(arguments: [Double.nan, .infinity])
    func `with an invalid wall clock tokens are saved as old ones, and errors name no time`(
        time: Double
    ) throws {
        let stage = Stage(), clock = ManualClock(), loader = ScriptedLoader(), store = InMemoryTokenStore()
        let service = { (time: Double) in
            TokenService(
                store: store,
                environment: .driven(
                    by: stage, clock: clock, wallClock: { Date(timeIntervalSinceReferenceDate: time) }),
                loader: loader)
        }
        func nextCall() -> ScriptedLoader.Call? { stage.start { try await loader.nextCall() }.value }
        let first = service(time), failing = stage.start { try await first.retrieveToken() }
        nextCall()?.fail(with: ScriptedFailure(retryAfter: .seconds(10)))
        stage.run()
        #expect(failing.code == .loadFailed && failing.retryAt == nil)
        clock.advance(by: .seconds(10))
        let caller = stage.start { try await first.retrieveToken() }
        nextCall()?.succeed(with: .granted("a"))
        stage.run()
        #expect(caller.value?.value == "a")
        #expect(store.contents?.received.timeIntervalSinceReferenceDate.isFinite == true)
        // Whether or not the clock is right again, the token doesn't count as new.
        for time in [0, time] {
            let next = service(time), caller = stage.start { try await next.retrieveToken() }
            #expect(nextCall()?.previous?.value == "a" && !caller.isDone)
        }
    }
}
