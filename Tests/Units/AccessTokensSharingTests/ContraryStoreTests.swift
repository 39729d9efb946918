import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@testable import AccessTokens
@testable import AccessTokensSharing

/// A store in memory that breaks its contract: it falsely reports that the record has changed, or that a swap conflicted.
private final class ContraryStore: SharedTokenStore {
    struct State {
        /// How many swaps succeed before the others conflict.
        var swaps = Int.max
        var wakesAtOnce = false
        /// How many waits fail before the others succeed.
        var failingWaits = 0
        /// How many operations were requested; after a thousand the store fails.
        var count = 0
    }

    struct Enough: Error {}

    let state = Lock(State())
    private let memory: InMemorySharedTokenStore

    init(_ memory: InMemorySharedTokenStore) {
        self.memory = memory
    }

    private func count() throws {
        let count = state.withLock { state in
            state.count += 1
            return state.count
        }
        if count > 1_000 { throw Enough() }
    }

    @concurrent func load() async throws -> SharedRecord? {
        try count()
        return await memory.load()
    }

    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        try count()
        let isLetThrough = state.withLock { state in
            state.swaps -= 1
            return state.swaps >= 0
        }
        return isLetThrough ? await memory.swap(bytes, ifAt: revision) : .conflict(memory.contents)
    }

    @concurrent func changedRecord(from revision: SharedRecord.Revision?, atMost limit: Duration) async throws -> SharedRecord? {
        try count()
        let (wakesAtOnce, fails) = state.withLock { state in
            state.failingWaits -= 1
            return (state.wakesAtOnce, state.failingWaits >= 0)
        }
        if fails { throw Enough() }
        if wakesAtOnce { return nil }
        return try await memory.changedRecord(from: revision, atMost: limit)
    }
}

@Suite("A store that breaks its contract")
struct ContraryStoreTests {
    /// Two services whose token has expired.
    private func fleet() throws -> (Fleet, ContraryStore) {
        var front: ContraryStore?
        let fleet = Fleet(store: { memory in
            let store = ContraryStore(memory)
            front = store
            return store
        })
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3595))
        return (fleet, try #require(front))
    }

    @Test func `a store whose waits end without a change is read about once a second`() throws {
        let (fleet, store) = try fleet()
        _ = fleet.call(0)
        let load = try fleet.load(0)
        store.state.withLock { ($0.wakesAtOnce, $0.count) = (true, 0) }
        let caller = fleet.call(1)
        for _ in 1...10 { fleet.advance(by: .seconds(1)) }
        #expect(store.state.withLock { $0.count } <= 14)
        fleet.succeed(load, with: .granted("second"))
        fleet.advance(by: .seconds(1))
        #expect(caller.value?.value == "second")
    }

    @Test(arguments: [1, 3])
    func `after a wait that the store refuses, the record is read a second later`(failures: Int) throws {
        let (fleet, store) = try fleet()
        _ = fleet.call(0)
        let load = try fleet.load(0)
        store.state.withLock { $0.failingWaits = failures }
        let caller = fleet.call(1)
        fleet.succeed(load, with: .granted("second"))
        for _ in 1...failures { fleet.advance(by: .seconds(1)) }
        #expect(caller.value?.value == "second")
    }

    @Test func `a conflict with the very record that a mark replaces is a store failure, and nothing is presented`() throws {
        let (fleet, store) = try fleet()
        store.state.withLock { ($0.swaps, $0.count) = (0, 0) }
        #expect(fleet.call(0).code == .storeFailed)
        #expect(store.state.withLock { $0.count } < 10)
        #expect(fleet.loaders[0].loadCount == 0)
    }

    @Test func `a conflict with the very record that a save replaces is a store failure, and the save is tried again`() throws {
        let (fleet, store) = try fleet()
        let caller = fleet.call(0)
        let load = try fleet.load(0)
        store.state.withLock { ($0.swaps, $0.count) = (0, 0) }
        fleet.succeed(load, with: .granted("second"))
        #expect(store.state.withLock { $0.count } < 10)
        #expect(!caller.isDone)
        store.state.withLock { $0.swaps = .max }
        fleet.advance(by: .seconds(5))
        #expect(caller.value?.value == "second")
        #expect(fleet.record?.token?.value == "second")
    }

    @Test func `a conflict with the very record that a sign-out replaces is a store failure`() throws {
        let (fleet, store) = try fleet()
        store.state.withLock { ($0.swaps, $0.count) = (0, 0) }
        #expect(fleet.signOut(0)?.storeFailure != nil)
        #expect(store.state.withLock { $0.count } < 10)
    }
}
