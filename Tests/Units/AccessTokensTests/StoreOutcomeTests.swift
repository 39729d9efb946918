import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@Suite("What callers and fences wait for when a store is slow, and what they are told")
struct StoreOutcomeTests {
    /// Returns a service with a token, whose store hangs in a save that is late.
    private func late() throws -> (Scene, ScriptedStore) {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        _ = scene.call()
        scene.release(store)
        store.hold()
        try scene.deliver(.granted("a"))
        scene.advance(by: .seconds(5))
        return (scene, store)
    }

    @Test func `while the store is late, no caller of a load waits for it`() throws {
        let (scene, store) = try late()
        for name in ["b", "c", "d"] {
            scene.invalidate(try #require(scene.service.cachedToken))
            let caller = scene.call()
            try scene.deliver(.granted(name))
            #expect(caller.value?.value == name, "at once")
        }
        scene.release(store)
        #expect(store.log == ["load", "save a", "save d"], "what came between is not written any more")
        store.hold()
        scene.invalidate(.granted("d"))
        let caller = scene.call()
        scene.release(store)
        store.hold()
        try scene.deliver(.granted("e"))
        #expect(!caller.isDone, "the store has caught up: saved before published, as ever")
        scene.release(store)
        #expect(caller.value?.value == "e" && store.contents?.value == "e")
    }

    @Test(arguments: [true, false])
    func `while the store is late, a fence reports it at once and reaches the store later`(byReset: Bool) throws {
        let (scene, store) = try late()
        let fence = byReset ? scene.signOut() : scene.signIn(with: .granted("new"))
        #expect(fence.value?.storeFailure?.code == .storeFailed)
        #expect(fence.value?.discarded.map(\.value) == ["a"])
        #expect(scene.service.cachedToken?.value == (byReset ? nil : "new"))
        scene.release(store)
        #expect(store.contents?.value == (byReset ? nil : "new"))
    }

    @Test(arguments: [true, false])
    func `a fence returns in one value what was given up and whether the store failed`(byReset: Bool) throws {
        for isFailing in [false, true] {
            let store = ScriptedStore(), scene = Scene(store: store)
            _ = scene.call()
            try scene.deliver(.granted("a"))
            if isFailing { store.fail(.save, .remove) }
            let change = (byReset ? scene.signOut() : scene.signIn(with: .granted("b"))).value
            #expect(change?.discarded.map(\.refreshToken) == ["a's grant"])
            #expect((change?.storeFailure?.underlying is ScriptedStore.Failure) == isFailing)
            #expect(scene.service.cachedToken?.value == (byReset ? nil : "b"), "it took effect all the same")
        }
    }

    @Test func `no fence waits longer than 5 s, whatever comes behind a store that hangs`() {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        var fences = [scene.signIn(with: .granted("a"))]
        var ends = [5]
        for second in 1...12 {
            scene.advance(by: .seconds(1))
            fences.append(second.isMultiple(of: 3) ? scene.signOut() : scene.signIn(with: .granted("\(second)")))
            ends.append(second < 5 ? 5 : second)
            for (fence, end) in zip(fences, ends) { #expect(fence.isDone == (end <= second)) }
        }
        scene.release(store)
        #expect(store.contents == nil && store.log == ["load", "save a", "load", "remove"])
    }

    @Test func `a caller behind a store operation that becomes late stops waiting for it`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        _ = scene.signOut()
        scene.advance(by: .seconds(3))
        let caller = scene.call()
        try scene.deliver(.granted("a"))
        #expect(!caller.isDone)
        scene.advance(by: .seconds(2))
        #expect(caller.value?.value == "a")
        scene.release(store)
        #expect(store.contents?.value == "a")
    }

    @Test func `a sign-out merged with a later one in the store gets the later one's result`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        store.hold()
        try scene.deliver(.granted("a"))
        let fences = [scene.signOut(), scene.signOut(), scene.signOut()]
        #expect(!fences.contains { $0.isDone })
        store.fail(.remove)
        scene.release(store)
        #expect(fences.allSatisfy { $0.value?.storeFailure?.underlying is ScriptedStore.Failure })
        #expect(store.log == ["load", "save a", "load", "remove"])
    }

    // MARK: A clock whose sleeps never end

    @Test(arguments: ["caller", "refusal", "retry", "reset", "replace", "a load's end"])
    func `every event checks a save's limit, even if the clock never wakes`(event: String) throws {
        let store = ScriptedStore(), scene = Scene(isRepeatable: true, store: store, clock: .neverWakes)
        _ = scene.call()
        let stuck = try scene.load()
        scene.advance(by: .seconds(30))
        let waiting = scene.calls(2)
        store.hold()
        try scene.deliver(.granted("a"))
        scene.advance(by: .seconds(5))
        #expect(!waiting.contains { $0.isDone })
        switch event {
        case "caller": #expect(scene.call().value?.value == "a")
        case "refusal": scene.invalidate(.hour("other"))
        case "retry": scene.retryNow()
        case "reset": scene.reset()
        case "replace": scene.replace(with: .hour("b"))
        default: scene.fail(stuck)
        }
        #expect(waiting.allSatisfy { $0.value?.value == "a" })
    }

    @Test func `the next fence checks a fence's limit, even if the clock never wakes`() {
        let store = ScriptedStore(), scene = Scene(store: store, clock: .neverWakes)
        store.hold()
        let first = scene.signOut()
        scene.advance(by: .seconds(5))
        #expect(!first.isDone)
        #expect(scene.signOut().value?.storeFailure?.code == .storeFailed)
        #expect(first.value?.storeFailure?.code == .storeFailed)
    }

    @Test func `every event checks a caller's own limit, even if the clock never wakes`() throws {
        let scene = Scene(clock: .neverWakes)
        let hasty = scene.call(within: .seconds(3)), patient = scene.call(within: .seconds(9))
        let load = try scene.load()
        scene.advance(by: .seconds(3))
        scene.retryNow()
        #expect(hasty.code == .deadlineExceeded && !patient.isDone)
        scene.advance(by: .seconds(6))
        scene.succeed(load, with: .hour("a"))
        #expect(patient.value?.value == "a", "a token that is here is no reason for an error")
    }

    @Test func `4: a restored token resets the count of failures`() throws {
        let stored = StoredToken(.hour("a"), received: .init(timeIntervalSince1970: 0))
        let store = ScriptedStore(stored), scene = Scene(store: store)
        store.fail(.load)
        for _ in 1...4 {
            #expect(scene.call().code == .storeFailed)
            scene.advance(by: .seconds(10))
        }
        store.fail()
        scene.invalidate(try #require(scene.call().value))
        let caller = scene.call()
        scene.fail(try scene.load())
        #expect(caller.retryAt == scene.clock.now.offset / .seconds(1), "after a first failure the next caller tries at once")
    }
}
