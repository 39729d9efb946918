import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@Suite("Guarantee 9: the sum of a caller's limits, and executors that never get to the load")
struct LimitTests {
    @Test func `restore and load share one limit and the save has its own, so a call takes 35 s at most`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        let caller = scene.call()
        scene.advance(by: .seconds(4))
        scene.release(store)
        let load = try scene.load()
        scene.advance(by: .seconds(26) - .milliseconds(1))
        #expect(!caller.isDone)
        store.hold()
        scene.succeed(load, with: .hour("a"))
        scene.advance(by: .seconds(5) - .milliseconds(1))
        #expect(!caller.isDone)
        scene.advance(by: .milliseconds(1))
        #expect(caller.value?.value == "a")
    }

    @Test func `a load after a slow restore has only the rest of the limit`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        let caller = scene.call()
        scene.advance(by: .seconds(4))
        scene.release(store)
        _ = try scene.load()
        scene.advance(by: .seconds(26) - .milliseconds(1))
        #expect(!caller.isDone)
        scene.advance(by: .milliseconds(1))
        #expect(caller.code == .loadTimedOut)
    }

    @Test func `a limit shorter than the store's also limits the restore, and its error names the store`() {
        let store = ScriptedStore(), scene = Scene(policy: RefreshPolicy(loadTimeout: .seconds(2)), store: store)
        store.hold()
        let caller = scene.call()
        scene.advance(by: .seconds(2))
        #expect(caller.code == .storeFailed)
    }

    // The computer slept: the clock has advanced, and the restore ends before any timer fires.
    @Test func `a restore that takes the whole limit is followed by no load, since that would be late from the start`() {
        let store = ScriptedStore(), scene = Scene(store: store, clock: .neverWakes)
        store.hold()
        let caller = scene.call()
        scene.advance(by: .seconds(30))
        scene.release(store)
        #expect(caller.code == .storeFailed && scene.loader.loadCount == 0)
        #expect(!scene.call().isDone && scene.loader.loadCount == 1)
    }

    // MARK: An executor that stays busy with other work

    @Test func `a load that never gets to run delays no limit and no fence`() {
        let frozen = Stage(), scene = Scene(loadStage: frozen)
        let patient = scene.call(), hasty = scene.call(within: .seconds(1))
        scene.advance(by: .seconds(1))
        #expect(hasty.code == .deadlineExceeded && !patient.isDone)
        scene.advance(by: .seconds(29))
        #expect(patient.code == .loadTimedOut)
        #expect(scene.call().code == .loadTimedOut)
        #expect(scene.signOut().isDone)
        let after = scene.call()
        scene.replace(with: .hour("given"))
        #expect(after.value?.value == "given")
    }

    @Test func `a store that never gets to run delays no fence for longer than 5 s`() {
        let frozen = Stage(), store = ScriptedStore(), scene = Scene(store: store, loadStage: frozen)
        let caller = scene.call(), signIn = scene.signIn(with: .hour("given"))
        #expect(!caller.isDone && !signIn.isDone)
        scene.advance(by: .seconds(5))
        #expect(caller.value?.value == "given" && signIn.value?.storeFailure?.code == .storeFailed)
        #expect(scene.signOut().value?.storeFailure?.code == .storeFailed)
        frozen.run()
        scene.stage.run()
        frozen.run()
        #expect(store.contents == nil)
    }

    @Test(arguments: ["reset", "replace", "time-out"])
    func `a load given up before it could run doesn't begin, so the old grant isn't used`(by end: String) throws {
        let frozen = Stage(), scene = Scene(isRepeatable: true, loadStage: frozen)
        scene.replace(with: AccessToken("expired", lifetime: .zero, refreshToken: "old"))
        switch end {
        case "reset": scene.reset()
        case "replace": scene.replace(with: .hour("given"))
        default: scene.advance(by: .seconds(30))
        }
        for _ in 1...3 {
            frozen.run()
            scene.stage.run()
        }
        #expect(scene.loader.loadCount == 0)
        let next = scene.call()
        frozen.run()
        #expect(next.isDone == (end == "replace") && scene.loader.loadCount == (end == "replace" ? 0 : 1))
    }

    @Test func `a load that can run only after its limit doesn't begin, even if the limit's timer hasn't fired`() throws {
        let frozen = Stage(), scene = Scene(isRepeatable: true, loadStage: frozen)
        let caller = scene.call()
        scene.clock.advance(by: .seconds(30))
        frozen.run()
        scene.stage.run()
        #expect(scene.loader.loadCount == 0)
        #expect((caller.error as? TokenServiceError)?.code == .loadTimedOut)
    }

    @Test func `a store operation that a fence overtook ends before the fence's own operation`() {
        let frozen = Stage(), store = ScriptedStore(), scene = Scene(store: store, loadStage: frozen)
        _ = scene.signIn(with: .hour("given"))
        let signOut = scene.signOut()
        for _ in 1...4 {
            frozen.run()
            scene.stage.run()
        }
        #expect(signOut.isDone && store.log == ["load", "save given", "load", "remove"])
    }
}
