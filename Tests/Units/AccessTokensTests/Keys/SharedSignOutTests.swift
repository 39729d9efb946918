import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Foundation
import Testing

/// The keys a1, a2 and a3 share a refresh token, which the key a keeps.
@Suite("Guarantee 21: a sign-out of one key that shares a refresh token is every key's")
struct SharedSignOutTests {
    /// Returns a scene in which Anna has signed in through a1, and a2 has one of her tokens.
    private func scene(hasStores: Bool = false) throws -> KeyScene {
        let scene = KeyScene(hasStores: hasStores, grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "anna")) }
        try scene.hold(.granted("a2 1", by: "anna 2"), for: "a2")
        return scene
    }

    private func retry(_ key: String, insteadOf token: String, _ scene: KeyScene) -> KeyScene.Caller {
        scene.stage.start { [services = scene.services] in try await services[key].retrieveToken(insteadOf: .hour(token)) }
    }

    @Test func `21: a sign-out of one key drops every key's token, and returns the tokens given up`() throws {
        let scene = try scene()
        let change = scene.stage.start { [services = scene.services] in await services["a1"].reset() }
        #expect(change.value?.discarded.map { $0.refreshToken ?? $0.value } == ["a1 1", "anna 2", "a2 1"])
        #expect(scene.services["a2"].cachedToken == nil)
        _ = scene.call("a2")
        #expect(try scene.load("a2").previous == nil)
    }

    @Test func `6: every key's waiting callers get the reset error at a sign-out, and never the next user's token`() throws {
        let scene = try scene()
        let callers = ["a3", "a4"].map { scene.call($0) }
        let load = try scene.load("a3")
        scene.perform("a1") { _ = await $0.reset() }
        #expect(callers.map(\.code) == [.reset, .reset])
        scene.perform("a1") { await $0.replace(with: .granted("a1 2", by: "ben")) }
        scene.succeed(load, with: .granted("a3 1", by: "anna 3"))
        #expect(scene.discards.last == "a:  replaced", "\(scene.discards)")
        #expect(scene.services["a3"].cachedToken == nil && scene.loadCount("a3") == 1 && scene.loadCount("a4") == 0)
    }

    @Test(arguments: [true, false])
    func `43: a request of another key that is refused after the change of user gets the reset error`(ofKeeper: Bool) throws {
        let scene = try scene()
        scene.perform(ofKeeper ? "a" : "a1") { _ = await $0.reset() }
        scene.perform("a1") { await $0.replace(with: .granted("a1 2", by: "ben")) }
        #expect(retry("a2", insteadOf: "a2 1", scene).code == .reset)
        let caller = scene.call("a2")
        #expect(try scene.load("a2").previous?.refreshToken == "ben")
        #expect(!caller.isDone)
    }

    @Test func `43: after a sign-in of the same user, a refused request of another key goes on with the new grant`() throws {
        let scene = try scene()
        scene.perform("a1") { await $0.replace(with: .granted("a1 2", by: "anna again")) }
        let request = retry("a2", insteadOf: "a2 1", scene), load = try scene.load("a2")
        #expect(load.previous?.refreshToken == "anna again")
        scene.succeed(load, with: .granted("a2 2", by: "anna 4"))
        #expect(request.value?.value == "a2 2")
    }

    @Test func `24: at a sign-out of one key, a store that hangs delays no other key's fence`() throws {
        let scene = try scene(hasStores: true)
        scene.stores?["a"].hold()
        let change = scene.stage.start { [services = scene.services] in await services["a1"].reset() }
        #expect(!change.isDone && scene.services["a2"].cachedToken == nil)
        scene.advance(by: .seconds(5))
        #expect(change.value?.storeFailure?.code == .storeFailed)
    }

    @Test func `21: a sign-in through another key right after a sign-out takes effect`() throws {
        let scene = try scene()
        _ = scene.stage.start { [services = scene.services] in
            async let signOut = services["a1"].reset()
            async let signIn = services["a2"].replace(with: .granted("ben's", by: "ben"))
            _ = await (signOut, signIn)
        }
        #expect(scene.services["a2"].cachedToken?.value == "ben's")
        #expect(retry("a2", insteadOf: "a2 1", scene).code == .reset, "Anna's session is over for this key, too")
        _ = scene.call("a3")
        #expect(try scene.load("a3").previous?.refreshToken == "ben")
    }

    @Test(arguments: ["ben", nil])
    func `6: a caller waiting for a key's token gets the reset error, even if the next user signs in at once`(grant: String?)
        throws
    {
        let scene = try scene()
        let waiting = scene.call("a3")
        let load = try scene.load("a3")
        _ = scene.stage.start { [services = scene.services] in
            async let signOut = services["a1"].reset()
            async let signIn = services["a3"].replace(
                with: AccessToken("ben's", lifetime: .seconds(3_600), refreshToken: grant))
            _ = await (signOut, signIn)
        }
        #expect(waiting.code == .reset)
        #expect(scene.services["a3"].cachedToken?.value == "ben's")
        scene.succeed(load, with: .granted("a3 1", by: "anna 3"))
        #expect(scene.services["a3"].cachedToken?.value == "ben's")
    }

    /// Returns a scene of a program that has just started, whose store holds its operations.
    private func slowScene(keysShareGrant: Bool) throws -> (KeyScene, ScriptedStore) {
        let keeper: @Sendable (String) -> String = { String($0.prefix(1)) }
        let scene = KeyScene(hasStores: true, grant: keysShareGrant ? keeper : nil)
        let store = try #require(scene.stores?["a"])
        scene.stage.start { try await store.save(StoredToken(.granted("first", by: "anna"), received: .distantPast)) }
        store.hold()
        return (scene, store)
    }

    @Test(arguments: [false, true])
    func `6: a grant that a slow store has at a sign-out is handed over when the store returns it`(keysShareGrant: Bool) throws {
        let (scene, store) = try slowScene(keysShareGrant: keysShareGrant)
        let change = scene.stage.start { [services = scene.services] in await services["a"].reset() }
        scene.advance(by: .seconds(5))
        #expect(change.value?.storeFailure?.code == .storeFailed && change.value?.discarded == [])
        store.release()
        scene.stage.run()
        #expect(store.contents == nil && scene.discards == ["a: first signedOut"], "\(scene.discards)")
    }

    @Test(arguments: [false, true])
    func `6: a grant that a slow store has at a sign-in is handed over when the store returns it`(keysShareGrant: Bool) throws {
        let (scene, store) = try slowScene(keysShareGrant: keysShareGrant)
        let change = scene.stage.start { [services = scene.services] in
            await services["a"].replace(with: .granted("next", by: "anna again"))
        }
        scene.advance(by: .seconds(5))
        #expect(change.value?.storeFailure?.code == .storeFailed && change.value?.discarded == [])
        store.release()
        scene.stage.run()
        #expect(store.contents?.refreshToken == "anna again" && scene.discards == ["a: first replaced"], "\(scene.discards)")
    }

    @Test func `6: loads after a sign-in hand over a slow store's grant, and none that they have spent`() throws {
        let (scene, store) = try slowScene(keysShareGrant: true)
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "anna again")) }
        scene.advance(by: .seconds(5))
        try scene.hold(.granted("a2 1", by: "anna 2"), for: "a2")
        try scene.hold(.granted("a3 1", by: "anna 3"), for: "a3")
        #expect(scene.discards == [])
        store.release()
        scene.stage.run()
        #expect(store.contents?.refreshToken == "anna 3" && scene.discards == ["a: first replaced"], "\(scene.discards)")
    }

    @Test(arguments: 0..<40)
    func `6: an expired token stored before its key shared a grant is handed over once`(steps: Int) throws {
        let (scene, store) = try slowScene(keysShareGrant: true)
        store.release()
        Task(executorPreference: scene.stage) { [services = scene.services] in try await services["a2"].retrieveToken() }
        for _ in 0..<steps { scene.stage.runMostUrgent() }
        Task(executorPreference: scene.stage, priority: .high) { [services = scene.services] in await services["a2"].reset() }
        while scene.stage.pending > 0 { scene.stage.runMostUrgent() }
        #expect(scene.discards == ["a: first signedOut"])
    }
}
