import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@Suite(.timeLimit(.minutes(10))) struct ScriptedStoreTests {
    let stage = Stage()

    private static func stored(_ value: String) -> StoredToken {
        StoredToken(AccessToken(value), received: Date(timeIntervalSince1970: 0))
    }

    @Test func `a scripted store keeps one token, and logs each operation`() async throws {
        let store = ScriptedStore()
        #expect(try await store.load() == nil && store.contents == nil)
        try await store.save(Self.stored("a"))
        #expect(try await store.load() == Self.stored("a"))
        try await store.remove()
        #expect(store.contents == nil)
        #expect(store.log == ["load", "save a", "load", "remove"])
    }

    @Test func `a failing operation of a scripted store changes nothing, and the others go on`() async throws {
        let store = ScriptedStore(Self.stored("a"))
        store.fail(.save, .remove)
        await #expect(throws: ScriptedStore.Failure.self) { try await store.save(Self.stored("b")) }
        await #expect(throws: ScriptedStore.Failure.self) { try await store.remove() }
        #expect(try await store.load() == Self.stored("a"))
        store.fail(.load)
        await #expect(throws: ScriptedStore.Failure.self) { try await store.load() }
        try await store.remove()
        #expect(store.contents == nil)
    }

    @Test func `held operations have begun, and end after the release`() {
        let store = ScriptedStore()
        store.hold()
        let saves = ["a", "b"].map { value in stage.start { try await store.save(Self.stored(value)) } }
        #expect(store.log == ["save a", "save b"] && store.contents == nil)
        #expect(saves.allSatisfy { !$0.isDone })
        store.release()
        stage.run()
        #expect(saves.allSatisfy { $0.value != nil } && store.contents?.value == "b")
        #expect(stage.start { try await store.remove() }.isDone)
    }

    @Test func `a held operation fails if the test says so before it ends`() {
        let store = ScriptedStore()
        store.hold()
        let save = stage.start { try await store.save(Self.stored("a")) }
        store.fail(.save)
        store.release()
        stage.run()
        #expect(save.error is ScriptedStore.Failure && store.contents == nil)
    }
}
