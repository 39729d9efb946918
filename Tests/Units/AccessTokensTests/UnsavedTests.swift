import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantee 50: a token that was issued is saved in the end")
struct UnsavedTests {
    /// Returns a service with a token that its store refused to save.
    private func unsaved() throws -> (Scene, ScriptedStore) {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.fail(.save, .remove)
        _ = scene.call()
        try scene.deliver(.granted("a"))
        #expect(store.log == ["load", "save a"])
        return (scene, store)
    }

    /// Returns a service with a token that its store refused to save for a reason of its own.
    private func refused(by failure: ScriptedFailure, isRepeatable: Bool = false) throws -> (Scene, ScriptedStore) {
        let store = RefusingStore(failure: failure), scene = Scene(isRepeatable: isRepeatable, store: store)
        store.store.fail(.save)
        _ = scene.call()
        try scene.deliver(isRepeatable ? .hour("a") : .granted("a"))
        #expect(store.store.log == ["load", "save a"])
        return (scene, store.store)
    }

    @Test func `50: hits save an unsaved token again after pauses that double to a minute, until the store has it`() throws {
        let (scene, store) = try unsaved()
        var saves = 1
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            scene.advance(by: .seconds(seconds) - .milliseconds(1))
            #expect(scene.call().value?.value == "a" && store.log.count == saves + 1)
            scene.advance(by: .milliseconds(1))
            #expect(scene.call().value?.value == "a")
            saves += 1
            #expect(store.log.count == saves + 1)
        }
        store.fail()
        scene.advance(by: .seconds(60))
        _ = scene.call()
        #expect(store.contents?.value == "a" && store.log.count == saves + 2)
        scene.advance(by: .seconds(600))
        _ = scene.call()
        #expect(store.log.count == saves + 2, "what is saved isn't saved again")
    }

    @Test func `50: retryNow saves an unsaved token at once`() throws {
        let (scene, store) = try unsaved()
        store.fail()
        scene.retryNow()
        #expect(store.contents?.value == "a")
    }

    @Test(arguments: [true, false]) func `50: a fence saves no token of the session that it ends`(isSignOut: Bool) throws {
        let (scene, store) = try unsaved()
        store.fail()
        scene.advance(by: .seconds(2))
        if isSignOut { scene.reset() } else { scene.replace(with: .granted("b")) }
        #expect(store.log.filter { $0 == "save a" }.count == 1 && store.contents?.value == (isSignOut ? nil : "b"))
    }

    @Test(arguments: [true, false])
    func `50: drain saves an unsaved token as soon as the store can, or reports what it couldn't save`(heals: Bool)
        throws
    {
        let (scene, store) = try unsaved()
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(10)) }
        #expect(!end.isDone && store.log == ["load", "save a", "save a"])
        if heals { store.fail() }
        scene.advance(by: .seconds(2))
        #expect(end.value?.isComplete == (heals ? true : nil) && store.contents?.value == (heals ? "a" : nil))
        scene.advance(by: .seconds(8))
        let result = try #require(end.value)
        #expect(result.hasEnded && result.isComplete == heals && result.unsaved.count == (heals ? 0 : 1))
        #expect(result.unsaved.allSatisfy { $0.token?.value == "a" && $0.error?.underlying is ScriptedStore.Failure })
    }

    @Test func `50: drain saves it in the pause after an attempt that failed while drain waited`() throws {
        let (scene, store) = try unsaved()
        store.hold()
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(10)) }
        scene.advance(by: .milliseconds(500))
        store.release()
        scene.stage.run()
        #expect(!end.isDone && store.log == ["load", "save a", "save a"])
        store.fail()
        scene.advance(by: .seconds(2))
        #expect(end.value?.isComplete == true && store.contents?.value == "a")
    }

    @Test func `50: several drains of one service wait beside each other, and end together`() throws {
        let (scene, store) = try unsaved()
        let ends = (0..<3).map { _ in
            scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(10)) }
        }
        scene.advance(by: .seconds(1))
        #expect(ends.allSatisfy { !$0.isDone } && store.log.count == 5, "each tries once at once")
        store.fail()
        scene.advance(by: .seconds(7))
        #expect(ends.allSatisfy { $0.value?.isComplete == true } && store.contents?.value == "a")
    }

    @Test func `50: drain doesn't wait for a store whose failure waiting can't mend`() throws {
        let (scene, _) = try refused(by: ScriptedFailure(.programChange))
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(10)) }
        scene.stage.run()
        let result = try #require(end.value)
        #expect(result.hasEnded && result.unsaved.map(\.token?.value) == ["a"])
    }

    @Test func `50: what waiting can't mend is told once and tried again after a minute, until the store has it`() throws {
        let (scene, store) = try refused(by: ScriptedFailure(.programChange), isRepeatable: true)
        let events = scene.service.events()
        scene.advance(by: .seconds(59))
        _ = scene.call()
        #expect(store.log == ["load", "save a"])
        for _ in 1...3 {
            scene.advance(by: .seconds(60))
            _ = scene.call()
        }
        #expect(store.log == ["load", "save a", "save a", "save a", "save a"])
        scene.advance(by: .seconds(3_600))
        _ = scene.call()
        try scene.deliver(.hour("b"))
        #expect(!scene.told(by: events).contains { $0.name == .storeFailed }, "neither a repetition nor the next token's save")
        store.fail()
        scene.advance(by: .seconds(60))
        _ = scene.call()
        #expect(store.contents?.value == "b")
    }

    @Test(arguments: [(30, 30), (3_600, 60)]) func `50: a store's retryAfter lengthens the pause, to a minute at most`(
        wish: Int, pause: Int
    ) throws {
        let (scene, store) = try refused(by: ScriptedFailure(retryAfter: .seconds(wish)))
        scene.advance(by: .seconds(pause) - .milliseconds(1))
        _ = scene.call()
        #expect(store.log == ["load", "save a"])
        scene.advance(by: .milliseconds(1))
        _ = scene.call()
        #expect(store.log == ["load", "save a", "save a"])
    }

    @Test func `50: a removal that took effect isn't repeated, although the token before it couldn't be read`() throws {
        let (scene, store) = try unsaved()
        store.fail(.load)
        let change = scene.stage.start { [service = scene.service] in await service.reset() }
        #expect(change.value?.storeFailure?.underlying is ScriptedStore.Failure, "there may be a grant to revoke")
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .zero) }
        scene.stage.run()
        #expect(end.value?.isComplete == true && store.log.filter { $0 == "remove" }.count == 1)
    }

    @Test func `50: a session begins with the shortest pause, however often the store refused the one before`() throws {
        let (scene, store) = try unsaved()
        for seconds in [1, 2, 4, 8, 16] {
            scene.advance(by: .seconds(seconds))
            _ = scene.call()
        }
        scene.replace(with: .granted("b"))
        let saves = store.log.count
        scene.advance(by: .seconds(1))
        _ = scene.call()
        #expect(store.log.count == saves + 1 && store.log.last == "save b")
    }

    @Test func `50: hits save it again while a refresh runs, too`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        try scene.deliver(.granted("a"))
        scene.advance(by: .seconds(3_000))
        _ = scene.call()
        let late = try scene.load()
        for seconds in [120, 300] {
            scene.advance(by: .seconds(seconds))
            _ = scene.call()
        }
        #expect(scene.loader.loadCount == 3, "the first refresh is forgotten, a second one runs")
        store.fail(.save)
        scene.succeed(late, with: .granted("b"))
        store.fail()
        scene.advance(by: .seconds(1))
        #expect(scene.call().value?.value == "b" && store.contents?.value == "b")
    }

    @Test func `50: drain names the save that still runs when its limit passes`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        store.hold()
        try scene.deliver(.granted("a"))
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(1)) }
        scene.advance(by: .seconds(1))
        let result = try #require(end.value)
        #expect(!result.hasEnded && result.unsaved.first?.token?.value == "a" && result.unsaved.first?.error == nil)
        store.release()
        scene.stage.run()
    }

    @Test func `50: drain names a sign-out whose removal has failed`() throws {
        let (scene, _) = try unsaved()
        scene.reset()
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .zero) }
        scene.stage.run()
        let result = try #require(end.value)
        #expect(result.unsaved.count == 1 && result.unsaved[0].token == nil && !result.isComplete)
    }

    @Test func `50: no refresh ahead spends an unsaved refresh token, and the load at hard expiry reports the store's error`()
        throws
    {
        let (scene, store) = try unsaved()
        let events = scene.service.events()
        scene.advance(by: .seconds(3_000))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 1, "in the soft window")
        scene.advance(by: .seconds(600))
        let caller = scene.call()
        let start = try #require(scene.told(by: events).first { $0.name == .loadStarted })
        #expect(start.error?.underlying is ScriptedStore.Failure)
        store.fail()
        try scene.deliver(.granted("b"))
        #expect(caller.value?.value == "b" && store.contents?.value == "b")
        scene.advance(by: .seconds(3_000))
        _ = scene.call()
        #expect(scene.loader.loadCount == 3, "the store has caught up")
    }

    @Test func `50: a sign-out has the last word over a failed save, and its removal is repeated as well`() throws {
        let (scene, store) = try unsaved()
        scene.reset()
        #expect(store.log.suffix(2) == ["load", "remove"])
        store.fail()
        scene.advance(by: .seconds(10))
        let caller = scene.call()
        #expect(store.log.suffix(1) == ["remove"])
        scene.advance(by: .seconds(10))
        try scene.deliver(.granted("b"))
        #expect(caller.value?.value == "b" && store.log.suffix(2) == ["remove", "save b"])
    }
}

/// A store whose failures are of the test's choice.
private struct RefusingStore: TokenStore {
    let failure: ScriptedFailure
    let store = ScriptedStore()

    private func told<Value>(_ body: () async throws -> Value) async throws -> Value {
        do { return try await body() } catch { throw failure }
    }

    @concurrent func load() async throws -> StoredToken? { try await told { try await store.load() } }
    @concurrent func save(_ token: StoredToken) async throws { try await told { try await store.save(token) } }
    @concurrent func remove() async throws { try await told { try await store.remove() } }
}
