import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@testable import AccessTokens
@testable import AccessTokensKeys
@testable import AccessTokensSharing

@Suite("Keys whose grants several processes share") struct SharedKeyTests {
    /// Tables of services, each as if in its own process, over the same records.
    private struct Scene {
        let stage = Stage()
        let clock = ManualClock()
        let stores = OddSharedStores()
        let loaders = Loaders()
        let tables: [TokenServices<String>]
        let discarded = Log<String>()

        init(keepingIdle limit: Int = 0, processes: Int = 2) {
            let environment = TokenService.Environment.driven(
                by: stage, clock: clock,
                wallClock: { [clock, start = clock.now] in
                    Date(timeIntervalSinceReferenceDate: start.duration(to: clock.now) / .seconds(1))
                }, seed: 1)
            tables = (0..<processes).map { [stores, loaders, discarded] process in
                TokenServices(
                    keepingIdle: limit, sharedStores: stores, environment: environment,
                    onDiscard: { discarded.append("\($0): \($1.token.value) \($1.reason)") },
                    loader: { loaders["\(process)\($0)"] })
            }
        }

        func call(_ process: Int, _ key: String) -> Stage.Player<AccessToken> {
            stage.start { [table = tables[process]] in try await table[key].retrieveToken() }
        }

        func load(_ process: Int, _ key: String) throws -> ScriptedLoader.Call {
            let next = stage.start { [loader = loaders["\(process)\(key)"]] in try await loader.nextCall() }
            return try #require(next.value)
        }

        func signIn(_ process: Int, _ key: String, with token: AccessToken) {
            _ = stage.start { [table = tables[process]] in await table[key].replace(with: token) }
        }

        func signOut(_ process: Int, _ key: String) -> SessionChange? {
            stage.start { [table = tables[process]] in await table[key].reset() }.value
        }

        func advance(by duration: Duration) {
            clock.advance(by: duration)
            stage.run()
        }

        func counts(_ process: Int = 0) -> [Int] {
            let counts = tables[process].counts
            return [counts.busy, counts.idle, counts.released]
        }
    }

    @Test func `22: each key's token is adopted by the other process, and by no other key`() throws {
        let scene = Scene()
        scene.signIn(0, "a", with: .granted("a1"))
        #expect(scene.call(1, "a").value?.value == "a1")
        let other = scene.call(1, "b")
        #expect(try scene.load(1, "b").previous == nil)
        #expect(!other.isDone)
    }

    @Test func `23: an evicted service finds its grant in the record`() throws {
        let scene = Scene()
        scene.signIn(0, "a", with: .granted("first"))
        #expect(scene.counts() == [0, 0, 0])
        #expect(scene.call(0, "a").value?.value == "first")
        scene.advance(by: .seconds(3_550))
        let caller = scene.call(0, "a")
        let load = try scene.load(0, "a")
        #expect(load.previous?.refreshToken == "first's grant")
        #expect(scene.counts() == [1, 0, 0], "a load runs")
        load.succeed(with: .granted("second"))
        scene.stage.run()
        #expect(caller.value?.value == "second")
        #expect(scene.counts() == [0, 0, 0])
        #expect(scene.call(0, "a").value?.value == "second")
    }

    @Test func `23: an unsaved token keeps its service`() throws {
        let scene = Scene()
        let caller = scene.call(0, "a")
        let load = try scene.load(0, "a")
        scene.stores["a"].isDown = true
        load.succeed(with: .granted("first"))
        scene.stage.run()
        caller.cancel()
        scene.advance(by: .seconds(600))
        #expect(scene.counts() == [1, 0, 0], "the only copy")
        scene.stores["a"].isDown = false
        scene.advance(by: .seconds(10))
        #expect(scene.stores.record("a")?.token?.value == "first")
        #expect(scene.counts() == [0, 0, 0])
    }

    @Test func `23: a sign-out keeps its service until the record has it`() throws {
        let scene = Scene()
        scene.signIn(0, "a", with: .granted("first"))
        scene.stores["a"].isDown = true
        #expect(scene.signOut(0, "a")?.storeFailure != nil)
        scene.advance(by: .seconds(100_000))
        #expect(scene.counts() == [1, 0, 0])
        scene.stores["a"].isDown = false
        _ = scene.call(0, "a")
        #expect(scene.stores.record("a")?.isTombstone == true)
        try scene.load(0, "a").succeed(with: .granted("second"))
        scene.stage.run()
        #expect(scene.counts() == [0, 0, 0], "nothing is lost with it any more")
    }

    @Test func `23: a mark that can't be taken back keeps its service until it can`() throws {
        let scene = Scene()
        scene.signIn(0, "a", with: .granted("first"))
        scene.advance(by: .seconds(3_550))
        _ = scene.call(0, "a")
        let load = try scene.load(0, "a")
        scene.stores["a"].isDown = true
        load.fail(with: ScriptedFailure.transient)
        scene.stage.run()
        for _ in 1...100 { scene.advance(by: .seconds(1)) }
        #expect(scene.counts() == [1, 0, 0] && scene.stores.record("a")?.mark != nil, "another service would wait for it")
        scene.stores["a"].isDown = false
        for _ in 1...27 { scene.advance(by: .seconds(1)) }
        #expect(scene.counts() == [0, 0, 0] && scene.stores.record("a")?.mark == nil)
    }

    @Test func `24: a sign-out of many keys reaches records that another process has made, and no other`() throws {
        let scene = Scene()
        for key in ["a1", "a2", "b1"] { scene.signIn(0, key, with: .granted(key)) }
        let change = scene.stage.start { [table = scene.tables[1]] in await table.reset { $0.hasPrefix("a") } }
        let changes = try #require(change.value)
        #expect(changes.changes.mapValues { $0.discarded.map(\.value) } == ["a1": ["a1"], "a2": ["a2"]])
        #expect(changes.storeFailure == nil)
        #expect(["a1", "a2", "b1"].map { scene.stores.record($0)?.isTombstone } == [true, true, false])
        #expect(scene.discarded.entries.sorted() == ["a1: a1 signedOut", "a2: a2 signedOut"])
        _ = scene.call(0, "a1")
        #expect(try scene.load(0, "a1").previous == nil)
        #expect(scene.call(0, "b1").value?.value == "b1")
        #expect(scene.counts(1) == [0, 0, 0])
    }

    @Test func `one closure can load every key's tokens`() throws {
        let stage = Stage(), stores = OddSharedStores()
        let tables = (0..<2).map { process in
            TokenServices<String>(sharedStores: stores, environment: .driven(by: stage)) { key, _ in
                AccessToken("\(key) of \(process)", lifetime: .seconds(3600))
            }
        }
        let calls = tables.map { table in stage.start { try await table["a"].retrieveToken() } }
        #expect(calls.map(\.value?.value) == ["a of 0", "a of 0"])
        let keys = stage.start { try await stores.storedKeys() }
        #expect(keys.value == ["a"])
    }
}

/// A scripted loader for each key of each process.
private final class Loaders: Sendable {
    private let loaders = Lock<[String: ScriptedLoader]>([:])

    subscript(name: String) -> ScriptedLoader {
        loaders.withLock { loaders in
            let loader = loaders[name] ?? ScriptedLoader()
            loaders[name] = loader
            return loader
        }
    }
}

/// A store for each key, behind a connection that fails when the test says so.
private final class OddSharedStores: SharedTokenStores {
    private typealias Entry = (odd: OddSharedStore, memory: InMemorySharedTokenStore)
    private let entries = Lock<[String: Entry]>([:])

    private func entry(_ key: String) -> Entry {
        entries.withLock { entries in
            let entry = entries[key] ?? (OddSharedStore(), InMemorySharedTokenStore())
            entries[key] = entry
            return entry
        }
    }

    subscript(key: String) -> OddSharedStore { entry(key).odd }

    func record(_ key: String) -> GrantRecord? {
        entry(key).memory.contents.flatMap { try? GrantRecordFormat.decode($0.bytes) }
    }

    func store(for key: String) -> any SharedTokenStore {
        let (odd, memory) = entry(key)
        return odd.over(memory)
    }

    @concurrent func forEachStoredKey(_ body: @escaping @Sendable (String) -> Void) async {
        entries.withLock { $0 }.filter { $0.value.memory.contents != nil }.keys.sorted().forEach(body)
    }
}
