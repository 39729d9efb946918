import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Foundation
import Testing

/// The keys a1 and a2 share a refresh token, which the key a keeps.
@Suite("Guarantee 21: keys that share a refresh token never load at once") struct LentGrantTests {
    private static func scene(keepingIdle limit: Int = 1_000, hasStores: Bool = false) -> KeyScene {
        KeyScene(keepingIdle: limit, hasStores: hasStores, grant: { String($0.prefix(1)) })
    }

    /// A user has signed in through a1.
    private static func signedIn(keepingIdle limit: Int = 1_000, hasStores: Bool = false) -> KeyScene {
        let scene = scene(keepingIdle: limit, hasStores: hasStores)
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        return scene
    }

    // Museum 30: parallel loads of several audiences spend one refresh token (auth0-spa-js#1684).
    @Test func `the keys' loads take turns, and each gets the refresh token that the last one brought`() throws {
        let scene = Self.signedIn()
        scene.advance(by: .seconds(3_600))
        let callers = ["a1", "a2", "a3"].map { scene.call($0) }
        #expect(["a1", "a2", "a3"].map { scene.loadCount($0) } == [1, 0, 0])
        var last = "r1"
        for key in ["a1", "a2", "a3"] {
            let load = try scene.load(key)
            #expect(load.previous?.refreshToken == last)
            last = "\(key)'s"
            scene.succeed(load, with: .granted(key, by: last))
        }
        #expect(callers.map { $0.value?.value } == ["a1", "a2", "a3"])
        #expect(callers.allSatisfy { $0.value?.refreshToken == nil }, "the refresh token stays where all find it")
    }

    @Test func `a sign-in through one key counts for all keys`() throws {
        let scene = Self.signedIn()
        #expect(scene.call("a1").value?.value == "a1 1")
        let caller = scene.call("a2")
        let load = try scene.load("a2")
        #expect(load.previous?.refreshToken == "r1" && load.previous?.value == "", "the other key's access token isn't shown")
        scene.succeed(load, with: .granted("a2 1", by: "r1"))
        #expect(caller.value?.value == "a2 1")
        #expect(scene.services["a1"].cachedToken?.value == "a1 1")
    }

    @Test func `kept members of a response stay with the refresh token that keys share`() throws {
        let scene = Self.signedIn()
        try scene.hold(
            AccessToken("a", lifetime: .seconds(60), refreshToken: "r2", members: ["id_token": "i"]), for: "a2")
        _ = scene.call("a3")
        #expect(try scene.load("a3").previous?.members == ["id_token": "i"])
    }

    @Test func `a refresh token's expiration is kept with it, and a load can renew it with the same refresh token`() throws {
        let scene = Self.signedIn()
        for (end, refreshToken) in [(nil, "r1"), (100.0, "r1"), (200, "r1"), (300, "r2"), (nil, "r2"), (400, "r3")] {
            let token = AccessToken(
                "a", lifetime: .seconds(60), refreshToken: refreshToken,
                refreshTokenExpiration: end.map(Date.init(timeIntervalSince1970:)))
            try scene.hold(token, for: "a2")
            _ = scene.call("a3")
            let next = try scene.load("a3")
            #expect(next.previous?.refreshToken == refreshToken)
            #expect(next.previous?.refreshTokenExpiration == token.refreshTokenExpiration)
            scene.succeed(next, with: token)
            scene.advance(by: .seconds(60))
        }
        #expect(scene.discards == [])
    }

    @Test func `a grant replaced by a sign-in is handed over once, even if a load has renewed it meanwhile`() throws {
        let scene = Self.signedIn()
        _ = scene.call("a2")
        let load = try scene.load("a2")
        scene.perform("a1") { await $0.replace(with: .granted("a1 2", by: "new")) }
        scene.succeed(load, with: AccessToken("a2", refreshToken: "r1", refreshTokenExpiration: .distantFuture))
        #expect(scene.discards.count == 1, "\(scene.discards)")
        #expect(try scene.load("a2").previous?.refreshToken == "new")
    }

    @Test func `keys of another account don't wait for these`() throws {
        let scene = Self.signedIn()
        _ = scene.call("a2")
        _ = scene.call("b1")
        #expect(scene.loadCount("b1") == 1)
    }

    @Test func `a load that is cancelled while it waits for its turn leaves the others in order`() throws {
        let scene = Self.signedIn()
        scene.advance(by: .seconds(3_600))
        let first = scene.call("a1")
        _ = scene.call("a2")
        let third = scene.call("a3")
        // a2's load waits for its turn, and is cancelled there.
        scene.perform("a2") { await $0.replace(with: .hour("a2 1")) }
        #expect(!first.isDone)
        try scene.succeed("a1", with: .granted("a1 2", by: "r2"))
        #expect(first.value?.value == "a1 2" && scene.loadCount("a2") == 0)
        let load = try scene.load("a3")
        #expect(load.previous?.refreshToken == "r2")
        scene.succeed(load, with: .granted("a3 1", by: "r3"))
        #expect(third.value?.value == "a3 1")
    }

    @Test func `a failed load gives up its turn and keeps the grant`() throws {
        let scene = Self.signedIn()
        let callers = ["a2", "a3"].map { scene.call($0) }
        try scene.fail("a2")
        #expect(callers[0].code == .loadFailed)
        #expect(try scene.load("a3").previous?.refreshToken == "r1")
    }

    @Test func `a grant that comes with a failure is used by the next key's load`() throws {
        let scene = Self.signedIn()
        _ = scene.call("a2")
        try scene.fail("a2", with: SalvagedGrant(.granted("", by: "r2"), reason: ScriptedFailure.transient))
        _ = scene.call("a3")
        #expect(try scene.load("a3").previous?.refreshToken == "r2")
    }

    // MARK: Signing in and out meanwhile

    @Test func `a sign-out of one key ends the grant for all, and what a load brings later is handed over`() throws {
        let scene = Self.signedIn()
        let caller = scene.call("a2")
        let load = try scene.load("a2")
        let change = scene.stage.start { [services = scene.services] in await services["a1"].reset() }
        #expect(change.value?.discarded.compactMap(\.refreshToken) == ["r1"])
        #expect(caller.code == .reset)
        scene.succeed(load, with: .granted("a2 1", by: "r2"))
        #expect(scene.discards.last == "a:  signedOut", "\(scene.discards)")
        #expect(scene.loadCount("a2") == 1)
        _ = scene.call("a3")
        #expect(try scene.load("a3").previous == nil)
    }

    @Test func `a sign-in during another key's load isn't overwritten by that load's grant`() throws {
        let scene = Self.signedIn()
        let caller = scene.call("a2")
        let load = try scene.load("a2")
        scene.perform("a1") { await $0.replace(with: .granted("a1 2", by: "new")) }
        scene.succeed(load, with: .granted("old user's", by: "r2"))
        #expect(!caller.isDone, "another user has signed in")
        let again = try scene.load("a2")
        #expect(again.previous?.refreshToken == "new")
        scene.succeed(again, with: .granted("a2 2", by: "newer"))
        #expect(caller.value?.value == "a2 2")
        #expect(scene.discards.filter { $0.hasPrefix("a: ") } == ["a:  replaced", "a:  replaced"], "\(scene.discards)")
    }

    @Test func `a sign-out of the account reaches all keys and the grant`() throws {
        let scene = Self.signedIn(hasStores: true)
        _ = scene.call("a2")
        try scene.succeed("a2", with: .granted("a2 1", by: "r2"))
        let changes = try #require(scene.signOut { $0.hasPrefix("a") }.value)
        #expect(Set(changes.changes.keys) == ["a", "a1", "a2"])
        #expect(changes.changes.values.flatMap { $0.discarded.compactMap(\.refreshToken) } == ["r2"])
        #expect(scene.stores?["a"].contents == nil)
        #expect(scene.services["a1"].cachedToken == nil && scene.services["a2"].cachedToken == nil)
    }

    @Test func `a key that loads with the grant while a sign-out lists the stores is signed out, too`() throws {
        let scene = Self.signedIn(keepingIdle: 0, hasStores: true)
        scene.stores?.list.hold()
        let change = scene.signOut { $0.hasPrefix("a") }
        let caller = scene.call("a2")
        try scene.succeed("a2", with: .granted("a2 1", by: "r2"))
        #expect(caller.value?.value == "a2 1")
        let held = scene.services["a2"]
        scene.stores?.list.release()
        scene.stage.run()
        #expect(change.value?.changes["a"]?.discarded.compactMap(\.refreshToken) == ["r2"])
        #expect(held.cachedToken == nil, "its token is of the session that has ended")
    }

    @Test(arguments: [ScriptedFailure.grantRefused, .transient])
    func `21: a sign-in through one key ends the pauses of the others`(failure: ScriptedFailure) throws {
        let scene = Self.scene()
        for _ in 0..<4 {
            _ = scene.call("a2")
            if scene.loadCount("a2") > 0 { try? scene.fail("a2", with: failure) }
        }
        #expect(scene.call("a2").isDone, "it pauses")
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        let caller = scene.call("a2"), load = try scene.load("a2")
        #expect(load.previous?.refreshToken == "r1")
        scene.succeed(load, with: .granted("a2 1", by: "r1"))
        #expect(caller.value?.value == "a2 1")
    }

    @Test func `21: a sign-in through one key signs in every key that the server had refused`() throws {
        let scene = Self.signedIn()
        for key in ["a1", "a2"] {
            if key == "a1" { scene.advance(by: .seconds(3_600)) }
            let caller = scene.call(key)
            try scene.fail(key, with: ScriptedFailure.grantRefused)
            #expect((caller.error as? TokenServiceError)?.remedy == .signIn)
        }
        scene.perform("a1") { await $0.replace(with: .granted("a1 2", by: "r2")) }
        _ = scene.call("a2")
        #expect(try scene.load("a2").previous?.refreshToken == "r2")
    }

    @Test(arguments: 0..<12) func `21: a refusal of the old grant that arrives during a sign-in blocks no key`(lead: Int) throws {
        let scene = Self.signedIn()
        _ = scene.call("a2")
        try scene.load("a2").fail(with: ScriptedFailure.grantRefused)
        for _ in 0..<lead { scene.stage.runOnce() }
        scene.perform("a1") { await $0.replace(with: .granted("a1 2", by: "new")) }
        _ = scene.call("a2")
        #expect(try scene.load("a2").previous?.refreshToken == "new")
    }

    // MARK: Stores and eviction

    @Test func `21: retryNow also ends the pause of the store that keys share`() throws {
        let scene = Self.scene(hasStores: true), store = try #require(scene.stores?["a"])
        store.fail(.load)
        for _ in 0..<8 {
            scene.advance(by: .seconds(80))
            #expect(scene.call("a1").code == .loadFailed)
        }
        store.fail()
        scene.perform("a1") { await $0.retryNow() }
        let caller = scene.call("a1")
        #expect(!caller.isDone && scene.loadCount("a1") == 1)
    }

    @Test func `a rotated refresh token is saved before any caller gets its access token`() throws {
        let scene = Self.signedIn(hasStores: true), store = try #require(scene.stores?["a"])
        store.hold()
        let caller = scene.call("a2")
        try scene.succeed("a2", with: .granted("a2 1", by: "r2"))
        #expect(!caller.isDone)
        let other = scene.call("a3")
        #expect(scene.loadCount("a3") == 0, "the next turn begins when it is saved")
        store.release()
        scene.stage.run()
        #expect(caller.value?.value == "a2 1" && store.contents?.refreshToken == "r2")
        #expect(try scene.load("a3").previous?.refreshToken == "r2")
        _ = other
    }

    @Test func `a store that hangs costs 5 s, and the grant is kept until it is saved`() throws {
        let scene = Self.signedIn(keepingIdle: 0, hasStores: true), store = try #require(scene.stores?["a"])
        let caller = scene.call("a2"), load = try scene.load("a2")
        store.hold()
        scene.succeed(load, with: .granted("a2 1", by: "r2"))
        scene.advance(by: .seconds(5))
        #expect(caller.value?.value == "a2 1")
        let next = scene.call("a3")
        #expect(next.error == nil, "\(String(describing: next.error))")
        #expect(try scene.load("a3").previous?.refreshToken == "r2")
    }

    @Test(arguments: [true, false]) func `the grant outlives its keys' services`(hasStores: Bool) throws {
        let scene = Self.signedIn(keepingIdle: 0, hasStores: hasStores)
        _ = scene.call("a2")
        try scene.succeed("a2", with: .granted("a2 1", by: "r2"))
        #expect(scene.counts == [0, 0, 0])
        _ = scene.call("a2")
        #expect(scene.makings == ["a1", "a2", "a2"])
        #expect(try scene.load("a2").previous?.refreshToken == "r2")
    }

    @Test func `a store that can't be read fails the load, and no loader is called`() throws {
        let scene = Self.scene(hasStores: true), store = try #require(scene.stores?["a"])
        store.fail(.load)
        let caller = scene.call("a1")
        #expect(caller.code == .loadFailed && scene.loadCount("a1") == 0)
        #expect(((caller.error as? TokenServiceError)?.underlying as? TokenServiceError)?.code == .storeFailed)
    }

    @Test(arguments: [Duration.seconds(3_600), .zero])
    func `a whole token stored by an earlier version provides its grant, and is never handed out`(lifetime: Duration) throws {
        let scene = Self.scene(hasStores: true), store = try #require(scene.stores?["a"])
        let stored = StoredToken(
            AccessToken("other", lifetime: lifetime, refreshToken: "r1"), received: Date(timeIntervalSince1970: 0))
        _ = scene.stage.start { try await store.save(stored) }
        let caller = scene.call("a1")
        #expect(!caller.isDone)
        #expect(try scene.load("a1").previous?.refreshToken == "r1")
    }
}
