import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 24: a sign-out of many keys reaches all of them") struct AccountSignOutTests {
    private static let isA: @Sendable (String) -> Bool = { $0.hasPrefix("a") }

    @Test func `a sign-out reaches the keys that are meant, and no other`() throws {
        let scene = KeyScene()
        for key in ["a1", "a2", "b1"] { try scene.hold(.granted(key), for: key) }
        let waiting = scene.call("a3")
        let change = scene.signOut(where: Self.isA)
        #expect(waiting.code == .reset)
        let changes = try #require(change.value)
        #expect(changes.changes.mapValues { $0.discarded.map(\.value) } == ["a1": ["a1"], "a2": ["a2"], "a3": []])
        #expect(changes.storeFailure == nil)
        #expect(scene.services["a1"].cachedToken == nil && scene.services["b1"].cachedToken?.value == "b1")
        #expect(scene.discards.sorted() == ["a1: a1 signedOut", "a2: a2 signedOut"])
    }

    @Test func `a sign-out reaches stored tokens whose services aren't in memory`() throws {
        let scene = KeyScene(keepingIdle: 0, hasStores: true)
        for key in ["a1", "a2", "b1"] { try scene.hold(.granted(key), for: key) }
        #expect(scene.counts == [0, 0, 0])
        let changes = try #require(scene.signOut(where: Self.isA).value)
        #expect(changes.changes.mapValues { $0.discarded.map(\.value) } == ["a1": ["a1"], "a2": ["a2"]])
        for key in ["a1", "a2"] {
            let caller = scene.call(key)
            #expect(!caller.isDone)
            #expect(try scene.load(key).previous == nil)
        }
        #expect(scene.call("b1").value?.value == "b1")
    }

    @Test func `a store that hangs delays no other key's fence, nor the sign-out by more than 5 s`() throws {
        let scene = KeyScene(hasStores: true)
        for key in ["a1", "a2"] { try scene.hold(.granted(key), for: key) }
        scene.stores?["a1"].hold()
        let change = scene.signOut(where: Self.isA)
        #expect(!change.isDone)
        #expect(scene.services["a1"].cachedToken == nil && scene.services["a2"].cachedToken == nil)
        #expect(scene.stores?["a2"].contents == nil)
        scene.advance(by: .seconds(5))
        #expect(change.value?.changes["a1"]?.storeFailure?.code == .storeFailed)
        #expect(change.value?.changes["a2"]?.storeFailure == nil)
    }

    @Test func `a sign-out reports a list of stored keys that fails or hangs, and still fences the keys in memory`() throws {
        for hangs in [true, false] {
            let scene = KeyScene(hasStores: true)
            try scene.hold(.granted("a1"), for: "a1")
            if hangs { scene.stores?.list.hold() } else { scene.stores?.list.fail(.load) }
            let change = scene.signOut(where: Self.isA)
            #expect(scene.services["a1"].cachedToken == nil)
            if hangs {
                #expect(!change.isDone)
                scene.advance(by: .seconds(5))
            }
            #expect(change.value?.storeFailure?.code == .storeFailed)
            #expect(change.value?.changes["a1"]?.discarded.first?.value == "a1")
        }
    }

    @Test func `a sign-in that comes while the stores are read is not undone`() throws {
        let scene = KeyScene(keepingIdle: 0, hasStores: true)
        try scene.hold(.granted("old"), for: "a1")
        scene.stores?.list.hold()
        let change = scene.signOut(where: Self.isA)
        scene.perform("a1") { await $0.replace(with: .granted("new")) }
        let held = scene.services["a1"]
        scene.stores?.list.release()
        scene.stage.run()
        #expect(change.value?.changes.isEmpty == true)
        #expect(held.cachedToken?.value == "new" && scene.stores?["a1"].contents?.value == "new")
    }

    @Test func `a key whose service is just being made is signed out, and gets no second service`() throws {
        let stage = Stage(), loader = ScriptedLoader(), stores = ScriptedStores()
        let meanwhile = Lock<(@Sendable () -> Void)?>(nil)
        let services = TokenServices<String>(
            stores: stores, environment: .driven(by: stage),
            loader: { _ in
                meanwhile.withLock { $0.take() }?()
                return loader
            })
        let changes = Log<SessionChanges<String>>()
        meanwhile.withLock {
            $0 = {
                _ = stage.start { changes.append(await services.reset { _ in true }) }
                stage.run()
            }
        }
        // While this caller makes the service, a sign-out begins and ends.
        let service = services["a1"]
        #expect(changes.entries.map { $0.changes.keys.sorted() } == [["a1"]])
        #expect(services["a1"] === service)
    }

    @Test func `two concurrent sign-outs hand over each grant once`() throws {
        let scene = KeyScene(keepingIdle: 0, hasStores: true)
        for key in ["a1", "a2"] { try scene.hold(.granted(key), for: key) }
        scene.stores?.list.hold()
        let changes = [scene.signOut(where: Self.isA), scene.signOut(where: Self.isA)]
        scene.stores?.list.release()
        scene.stage.run()
        let given = changes.flatMap { $0.value?.changes.values.flatMap { $0.discarded.map(\.value) } ?? [] }
        #expect(given.sorted() == ["a1", "a2"])
        for key in ["a1", "a2"] { #expect(scene.stores?[key].contents == nil) }
    }

    @Test func `a cancellation of the caller doesn't cut a sign-out short`() throws {
        let scene = KeyScene(keepingIdle: 0, hasStores: true)
        try scene.hold(.granted("a1"), for: "a1")
        scene.stores?.list.hold()
        let change = scene.signOut(where: Self.isA)
        change.cancel()
        scene.stores?.list.release()
        scene.stage.run()
        #expect(change.value?.changes["a1"]?.discarded.first?.value == "a1")
        #expect(scene.stores?["a1"].contents == nil)
    }
}
