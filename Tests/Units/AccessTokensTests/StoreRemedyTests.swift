import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@Suite("Guarantee 55: a store says what can be done about its failure")
struct StoreRemedyTests {
    /// A store that can't be read until it is saved, and says what helps.
    private struct UnreadableStore: TokenStore {
        let remedy: TokenServiceError.Remedy
        var retryAfter: Duration?
        let store = ScriptedStore()

        @concurrent func load() async throws -> StoredToken? {
            guard let stored = try await store.load() else {
                throw ScriptedFailure(remedy, retryAfter: retryAfter, message: "unreadable")
            }
            return stored
        }

        @concurrent func save(_ token: StoredToken) async throws { try await store.save(token) }
        @concurrent func remove() async throws { try await store.remove() }
    }

    private func state(of scene: Scene) -> SignInState? {
        scene.stage.start { [service = scene.service] in await service.signInState() }.value
    }

    @Test(arguments: [TokenServiceError.Remedy.signIn, .programChange, .clientRegistration])
    func `55: a repeatable load starts after a read error that waiting can't mend, and an event has that error`(
        remedy: TokenServiceError.Remedy
    ) throws {
        let store = UnreadableStore(remedy: remedy), scene = Scene(isRepeatable: true, store: store)
        let events = scene.service.events(), caller = scene.call()
        try scene.deliver(.hour("a"))
        #expect(caller.value?.value == "a" && store.store.contents?.value == "a")
        #expect(store.store.log == ["load", "save a"], "read once")
        let told = scene.told(by: events)
        #expect(told.map(\.name) == [.storeFailed, .loadStarted, .loadSucceeded])
        #expect(told.first?.error?.underlying as? ScriptedFailure == ScriptedFailure(remedy, message: "unreadable"))
    }

    @Test(arguments: [true, false])
    func `55: a locked store stops every load, and is read again after a pause`(isRepeatable: Bool) {
        let store = UnreadableStore(remedy: .retry), scene = Scene(isRepeatable: isRepeatable, store: store)
        #expect(scene.call().code == .storeFailed && scene.loader.loadCount == 0)
        scene.advance(by: .seconds(2))
        #expect(scene.call().code == .storeFailed && scene.loader.loadCount == 0 && store.store.log == ["load", "load"])
        #expect(state(of: scene)?.code == .unknown)
    }

    @Test(arguments: [(30, 30), (3_600, 60)]) func `55: a locked store says when to read it again, within a minute`(
        wish: Int, pause: Int
    ) {
        let store = UnreadableStore(remedy: .retry, retryAfter: .seconds(wish)), scene = Scene(store: store)
        #expect(scene.call().code == .storeFailed)
        scene.advance(by: .seconds(pause) - .milliseconds(1))
        #expect(scene.call().code == .storeFailed && store.store.log == ["load"])
        scene.advance(by: .milliseconds(1))
        #expect(scene.call().code == .storeFailed && store.store.log == ["load", "load"])
    }

    @Test func `55: a read that a sign-in cut off announces nothing in the sign-in's session`() {
        let store = UnreadableStore(remedy: .programChange), scene = Scene(isRepeatable: true, store: store)
        let events = scene.service.events()
        store.store.hold()
        _ = scene.call()
        let change = scene.stage.start { [service = scene.service] in await service.replace(with: .hour("b")) }
        store.store.release()
        scene.stage.run()
        #expect(change.isDone && store.store.contents?.value == "b")
        #expect(scene.told(by: events).map(\.name) == [.replaced])
    }

    @Test func `55: an unusable stored token counts as signed out: callers get the remedy signIn, and nothing is read again`() {
        let store = UnreadableStore(remedy: .signIn), scene = Scene(store: store)
        let error = scene.call().error as? TokenServiceError
        #expect(error?.code == .storeFailed && error?.remedy == .signIn && error?.retryAt == nil)
        scene.advance(by: .seconds(100_000))
        #expect(scene.call().code == .storeFailed && scene.loader.loadCount == 0 && store.store.log == ["load"])
        let state = state(of: scene)
        #expect(state?.code == .signedOut && state?.error?.remedy == .signIn)
        scene.replace(with: .granted("b"))
        #expect(scene.call().value?.value == "b" && store.store.contents?.value == "b")
    }

    @Test func `55: retryNow reads a store that has been restored`() async throws {
        let store = UnreadableStore(remedy: .signIn), scene = Scene(store: store)
        #expect(scene.call().code == .storeFailed)
        try await store.save(StoredToken(.granted("a"), received: Date(timeIntervalSince1970: 0)))
        scene.retryNow()
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 0)
    }

    @Test func `55: a store that needs a change of the program is read again after the longest pause`() {
        let store = UnreadableStore(remedy: .programChange), scene = Scene(store: store)
        #expect((scene.call().error as? TokenServiceError)?.remedy == .programChange)
        scene.advance(by: .seconds(59))
        #expect(scene.call().code == .storeFailed && store.store.log == ["load"])
        scene.advance(by: .seconds(10))
        #expect(scene.call().code == .storeFailed && store.store.log == ["load", "load"] && scene.loader.loadCount == 0)
    }
}
