import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Each grant that is given up reaches the program, which may revoke it")
struct DiscardTests {
    private static var fullStore: ScriptedStore {
        ScriptedStore(StoredToken(.granted("stored"), received: Date(timeIntervalSince1970: 0)))
    }

    @Test func `a sign-out before the first miss hands over what the store has, and removes it`() {
        let store = Self.fullStore, scene = Scene(store: store)
        let change = scene.signOut().value
        #expect(change?.discarded.map(\.refreshToken) == ["stored's grant"] && change?.storeFailure == nil)
        #expect(scene.discards == ["stored signedOut"])
        #expect(store.contents == nil && store.log == ["load", "remove"])
        #expect(scene.signOut().value?.discarded.isEmpty == true && scene.discards.count == 1)
    }

    @Test(arguments: [true, false])
    func `a store that can't be read is still cleared by a sign-out or overwritten by a sign-in`(byReset: Bool) {
        let store = Self.fullStore, scene = Scene(store: store)
        store.fail(.load)
        let change = byReset ? scene.signOut().value : scene.signIn(with: .granted("new")).value
        #expect(change?.discarded.isEmpty == true && scene.discards.isEmpty)
        #expect((change?.storeFailure?.code == .storeFailed) == byReset, "what was removed unread can't be revoked")
        #expect(store.contents?.value == (byReset ? nil : "new"))
    }

    @Test func `a replacement before the first miss hands over the stored grant, once`() {
        let store = Self.fullStore, scene = Scene(store: store)
        let change = scene.signIn(with: .granted("new")).value
        #expect(change?.discarded.map(\.value) == ["stored"] && scene.discards == ["stored replaced"])
        #expect(store.contents?.value == "new")
        scene.reset()
        #expect(scene.discards == ["stored replaced", "new signedOut"])
    }

    @Test func `a sign-in with the same grant as the store's gives nothing up`() {
        let scene = Scene(store: Self.fullStore)
        let change = scene.signIn(with: .granted("new", by: "stored's grant")).value
        #expect(change?.discarded.isEmpty == true && scene.discards.isEmpty)
    }

    @Test(arguments: [true, false])
    func `a fence that comes while the store is read hands over the stored grant, once`(byReset: Bool) {
        let store = Self.fullStore, scene = Scene(store: store)
        store.hold()
        _ = scene.call()
        let fence = byReset ? scene.signOut() : scene.signIn(with: .granted("new"))
        #expect(!fence.isDone && scene.discards.isEmpty)
        scene.release(store)
        #expect(scene.discards == [byReset ? "stored signedOut" : "stored replaced"])
        #expect(fence.value?.discarded.map(\.value) == ["stored"])
    }

    @Test func `fences in quick succession hand over the stored grant, once`() {
        let store = Self.fullStore, scene = Scene(store: store)
        store.hold()
        _ = scene.call()
        let fences = [scene.signIn(with: .granted("new")), scene.signOut(), scene.signOut()]
        scene.release(store)
        #expect(fences.allSatisfy { $0.isDone } && store.contents == nil)
        #expect(scene.discards == ["new signedOut", "stored signedOut"])
    }

    @Test func `a grant that a removal finds after its limit is still handed over, once`() {
        let store = Self.fullStore, scene = Scene(store: store)
        store.hold()
        let signOut = scene.signOut()
        scene.advance(by: .seconds(5))
        #expect(signOut.value?.storeFailure?.code == .storeFailed && signOut.value?.discarded.isEmpty == true)
        #expect(scene.discards.isEmpty)
        scene.release(store)
        #expect(scene.discards == ["stored signedOut"] && store.contents == nil)
        scene.reset()
        #expect(scene.discards.count == 1)
    }

    @Test(arguments: [
        (["reset"], "signedOut"), (["replace"], "replaced"), (["replace", "reset"], "signedOut"),
        (["reset", "replace"], "signedOut"),
    ])
    func `a load that a fence cuts off may still succeed, and its grant is handed over`(
        fences: [String], reason: String
    ) throws {
        for store in [nil, ScriptedStore()] {
            let scene = Scene(store: store)
            _ = scene.call()
            let load = try scene.load()
            for fence in fences { if fence == "reset" { scene.reset() } else { scene.replace(with: .granted("given")) } }
            let before = scene.discards
            scene.succeed(load, with: .granted("late"))
            #expect(scene.discards == before + ["late \(reason)"])
            #expect(scene.service.cachedToken?.value == (fences.last == "reset" ? nil : "given"))
            #expect(store == nil || store?.contents == scene.service.cachedToken)
        }
    }

    @Test func `a cut-off load that returns the service's current grant gives nothing up`() throws {
        let scene = Scene()
        _ = scene.call()
        let load = try scene.load()
        scene.replace(with: .granted("given", by: "shared"))
        scene.succeed(load, with: .granted("late", by: "shared"))
        #expect(scene.discards.isEmpty)
    }

    @Test func `an access token without a grant is handed over only at a sign-out`() throws {
        let scene = try Scene.holding(.hour("a"))
        #expect(scene.signIn(with: .hour("b")).value?.discarded.isEmpty == true)
        #expect(scene.discards.isEmpty)
        #expect(scene.signOut().value?.discarded.map(\.value) == ["b"])
        #expect(scene.discards == ["b signedOut"])
    }

    @Test(arguments: [true, false])
    func `a fence hands over a token that is being saved, once`(byReset: Bool) throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        store.hold()
        try scene.deliver(.granted("saving"))
        let fence = byReset ? scene.signOut() : scene.signIn(with: .granted("new"))
        scene.release(store)
        #expect(fence.value?.discarded.map(\.value) == ["saving"])
        #expect(scene.discards == [byReset ? "saving signedOut" : "saving replaced"])
        #expect(store.contents?.value == (byReset ? nil : "new"))
    }

    @Test func `a slow onDiscard handler delays nothing, and may call the service`() {
        let stage = Stage(), clock = ManualClock(), never = SingleResult<Void>(), box = Lock<TokenService?>(nil)
        let answers = Log<String?>()
        let service = TokenService(
            environment: .driven(by: stage, clock: clock),
            onDiscard: { _ in
                answers.append(try? await box.withLock { $0 }?.retrieveToken().value)
                try? await never.value()
            }
        ) { _ in .granted("a") }
        box.withLock { $0 = service }
        _ = stage.start { try await service.retrieveToken() }
        for _ in 1...3 { #expect(stage.start { await service.reset() }.isDone) }
        #expect(answers.entries == ["a", "a", "a"])
        #expect(stage.start { try await service.retrieveToken() }.value?.value == "a")
        box.withLock { $0 = nil }
        never.complete(with: .success(()))
        stage.run()
    }
}
