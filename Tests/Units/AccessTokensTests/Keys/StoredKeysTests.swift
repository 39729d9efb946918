import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 24: a sign-out of many stored keys goes on as long as it makes progress") struct StoredKeysTests {
    private static let keys = (0..<40).map { "a\($0 + 10)" }

    /// Keys whose tokens are stored, without services in memory.
    private func scene(_ keys: [String]) throws -> KeyScene {
        let scene = KeyScene(keepingIdle: 0, hasStores: true)
        for key in keys { try scene.hold(.granted(key), for: key) }
        return scene
    }

    @Test func `a list of stored keys may take as long as it likes, if no key takes longer than 5 s`() throws {
        let keys = Array(Self.keys.prefix(3)), scene = try scene(keys)
        scene.stores?.pace.withLock { $0 = { [clock = scene.clock] in try await clock.sleep(for: .seconds(4)) } }
        let change = scene.signOut { _ in true }
        for key in keys {
            #expect(!change.isDone)
            scene.advance(by: .seconds(4))
            #expect(scene.stores?[key].contents == nil, "a key is signed out as soon as it is named")
        }
        let changes = try #require(change.value)
        #expect(changes.storeFailure == nil)
        #expect(changes.changes.mapValues { $0.discarded.map(\.value) } == ["a10": ["a10"], "a11": ["a11"], "a12": ["a12"]])
    }

    @Test func `a list that stops halfway causes an error after 5 s, and the keys listed before are signed out`() throws {
        let keys = Array(Self.keys.prefix(3)), scene = try scene(keys)
        scene.stores?.pace.withLock { $0 = { [clock = scene.clock] in try await clock.sleep(for: .seconds(4)) } }
        let change = scene.signOut { _ in true }
        scene.advance(by: .seconds(4))
        scene.stores?.pace.withLock { $0 = { [clock = scene.clock] in try await clock.sleep(for: .seconds(3600)) } }
        scene.advance(by: .seconds(4))
        scene.advance(by: .seconds(4.9))
        #expect(!change.isDone)
        scene.advance(by: .seconds(0.1))
        #expect(change.value?.storeFailure?.code == .storeFailed)
        #expect(change.value?.changes.keys.sorted() == ["a10", "a11"])
        #expect(scene.stores?["a12"].contents?.value == "a12")
    }

    @Test func `a list that fails after some keys causes an error, and the keys listed before are signed out`() throws {
        let scene = try scene(Array(Self.keys.prefix(3)))
        let named = Log<Int>()
        scene.stores?.pace.withLock {
            $0 = {
                named.append(0)
                if named.entries.count == 3 { throw ScriptedFailure.transient }
            }
        }
        let changes = try #require(scene.signOut { _ in true }.value)
        #expect(changes.storeFailure?.code == .storeFailed)
        #expect(changes.changes.keys.sorted() == ["a10", "a11"])
    }

    @Test func `a sign-out uses 16 stores at a time, so that a disk doesn't get thousands of removals at once`() throws {
        let scene = try scene(Self.keys)
        for key in Self.keys { scene.stores?[key].hold() }
        let change = scene.signOut { _ in true }
        let asked = { Self.keys.filter { scene.stores?[$0].log.last != "save \($0)" } }
        #expect(asked().count == 16)
        for key in Self.keys {
            scene.stores?[key].release()
            scene.stage.run()
        }
        #expect(change.value?.changes.count == 40)
        #expect(change.value?.storeFailure == nil)
        #expect(Self.keys.allSatisfy { scene.stores?[$0].contents == nil })
    }

    @Test func `a sign-out ends after 5 s in all if every store hangs, not after 5 s for each`() throws {
        let scene = try scene(Self.keys)
        for key in Self.keys { scene.stores?[key].hold() }
        let change = scene.signOut { _ in true }
        scene.advance(by: .seconds(5))
        let changes = try #require(change.value)
        #expect(changes.storeFailure?.code == .storeFailed)
        #expect(changes.changes.count == 16 && changes.changes.values.allSatisfy { $0.storeFailure != nil })
    }
}
