import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

/// A shared store in memory that breaks one promise.
private actor MistakenStore: SharedTokenStore {
    enum Mistake: CaseIterable, Sendable {
        case none, swapsAnyway, comparesThenWrites, staleLoads, conflictsWithoutRecord, oneRevision, revisionOfLength, losesSwaps,
            cutsRecords, writesOnConflict, createsAnyway, seesDamage, missesChanges, ignoresCancellation
    }

    private let mistake: Mistake
    private let failsEvery: Int
    private var record: SharedRecord?
    private var previous: SharedRecord?
    private var count = 0
    private var calls = 0

    init(_ mistake: Mistake, failsEvery: Int = 0) {
        (self.mistake, self.failsEvery) = (mistake, failsEvery)
    }

    struct Lost: Error {}

    /// The store's contents, without a fault.
    var bytes: Data? { record?.bytes }

    private func answer<Value>(_ value: Value) throws -> Value {
        calls += 1
        if failsEvery > 0, count > 3, calls % failsEvery == 0 { throw Lost() }
        return value
    }

    @concurrent func load() async throws -> SharedRecord? { try await current() }

    private func current() throws -> SharedRecord? {
        var seen = mistake == .staleLoads && count % 5 == 4 ? previous : record
        if mistake == .seesDamage { seen?.damage = Lost() }
        return try answer(seen)
    }

    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        try await replace(bytes, revision)
    }

    private func replace(_ bytes: Data, _ revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        let isFree = record?.revision == revision || mistake == .swapsAnyway || mistake == .createsAnyway && revision == nil
        guard isFree else {
            if mistake == .writesOnConflict, let record { self.record?.bytes = record.bytes + Data("!".utf8) }
            return try answer(.conflict(mistake == .conflictsWithoutRecord ? nil : record))
        }
        if mistake == .comparesThenWrites, count > 3 { await Task.yield() }
        count += 1
        let name =
            switch mistake {
            case .oneRevision: "1"
            case .revisionOfLength: "\(bytes.count)"
            default: "\(count)"
            }
        if mistake == .losesSwaps, count % 7 == 0 { return try answer(.done(.init(name))) }
        previous = record
        record = SharedRecord(mistake == .cutsRecords ? bytes.prefix(1_000) : bytes, revision: .init(name))
        return try answer(.done(.init(name)))
    }

    @concurrent func changedRecord(from revision: SharedRecord.Revision?, atMost limit: Duration) async throws -> SharedRecord? {
        // It notices only changes that happen during the wait.
        if mistake == .missesChanges { try await Task.sleep(for: .seconds(3_600)) }
        if mistake == .ignoresCancellation { await Task { try? await Task.sleep(for: .seconds(3_600)) }.value }
        return nil
    }
    nonisolated var holder: String? { nil }
    @concurrent func isRunning(_ holder: String) async -> Bool? { nil }
}

/// A store that notices that its task is cancelled, which its first swap does.
private struct CancellingStore: SharedTokenStore {
    let store: InMemorySharedTokenStore

    @concurrent func load() async throws -> SharedRecord? {
        try Task.checkCancellation()
        return await store.load()
    }

    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        try Task.checkCancellation()
        unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
        return await store.swap(bytes, ifAt: revision)
    }
}

@Suite(.inRealTime) struct `The check of shared stores` {
    @Test(arguments: MistakenStore.Mistake.allCases)
    private func `finds each mistake, and reports none in a correct store`(mistake: MistakenStore.Mistake) async throws {
        let store = MistakenStore(mistake)
        guard mistake != .none else {
            let report = try await checkSharedTokenStore([store, store], callers: 4, rounds: 20)
            #expect(report.loads >= 80 && report.swaps >= 20 && report.failures == 0)
            return
        }
        let violation = await #expect(throws: SharedStoreViolation.self) {
            let trial = try await SharedStoreTrial([store, store], patience: .milliseconds(10))
            try await trial.runOneAtATime()
            // Many rounds, for the fault that needs two callers at the same moment.
            _ = try await trial.run(callers: 8) { $0 < 200 }
        }
        #expect((violation?.description.count ?? 0) > 20)
    }

    @Test(arguments: [3, 5, 8])
    func `allows failures that the history explains`(failsEvery: Int) async throws {
        let store = MistakenStore(.none, failsEvery: failsEvery)
        let trial = try await SharedStoreTrial([store])
        // The first load of the callers' part must succeed; the earlier part has used 3 swaps of a store that doesn't fail yet.
        try await trial.runOneAtATime()
        let report = try await trial.run(callers: 4) { $0 < 20 }
        // The numbers depend on the threads; of at least 80 operations, every `failsEvery`-th fails.
        #expect(report.failures >= 80 / failsEvery - 1)
        #expect(report.loads + report.swaps + report.conflicts >= 80 - 80 / failsEvery)
    }

    @Test func `passes the stores that come with the library`() async throws {
        let memory = InMemorySharedTokenStore(), simulated = SimulatedSharedStore()
        for store in [memory, simulated] as [any SharedTokenStore] {
            let report = try await checkSharedTokenStore([store, store], callers: 4, rounds: 20)
            #expect(report.failures == 0)
        }
    }

    @Test func `leaves a record with which a fleet can begin or go on`() async throws {
        let empty = InMemorySharedTokenStore(), used = InMemorySharedTokenStore()
        let before = TokenService(sharedStore: used) { _ in AccessToken("loaded anew") }
        _ = await before.replace(with: AccessToken("signed in", lifetime: .seconds(3600)))
        for (store, expected) in [(empty, "loaded"), (used, "signed in")] {
            try await checkSharedTokenStore([store, store], callers: 2, rounds: 5)
            let service = TokenService(sharedStore: store) { _ in AccessToken("loaded") }
            #expect(try await service.retrieveToken().value == expected)
        }
        #expect(try await before.retrieveToken().value == "signed in")
    }

    @Test(arguments: [MistakenStore.Mistake.staleLoads, .oneRevision])
    private func `puts the record back after a violation, if the store lets it`(mistake: MistakenStore.Mistake) async throws {
        let store = MistakenStore(mistake)
        await #expect(throws: SharedStoreViolation.self) {
            try await checkSharedTokenStore([store, store], callers: 8, rounds: 200)
        }
        #expect(await store.bytes == Data())
    }

    // A mistaken store's loads are stale after 4, 9, … swaps.
    @Test(arguments: 3...9) func `puts the record back although loads are stale`(swaps: Int) async throws {
        let store = MistakenStore(.staleLoads)
        var revision: SharedRecord.Revision?
        for number in 0..<swaps {
            guard case .done(let next) = try await store.swap(Data("\(number)".utf8), ifAt: revision) else { continue }
            revision = next
        }
        try await SharedStoreTrial([store]).putBack(nil)
        #expect(await store.bytes == Data())
    }

    @Test func `puts the record back even if the store fails a few times`() async throws {
        let store = SimulatedSharedStore(), trial = try await SharedStoreTrial([store])
        try await trial.runOneAtATime()
        store.failNext(.load, 2)
        store.failNext(.swap, 3)
        await trial.putBack(nil)
        #expect(store.contents?.bytes == Data())
    }

    @Test func `puts the record back when its task is cancelled`() async throws {
        let store = InMemorySharedTokenStore()
        _ = await store.swap(Data("before".utf8), ifAt: nil)
        let check = Task { try await checkSharedTokenStore([CancellingStore(store: store)]) }
        await #expect(throws: CancellationError.self) { try await check.value }
        #expect(store.contents?.bytes == Data("before".utf8))
    }

    @Test(arguments: [0, -1]) func `reads the record once if it has no callers or no rounds`(none: Int) async throws {
        for (callers, rounds) in [(none, 1), (1, none)] {
            let report = try await checkSharedTokenStore([InMemorySharedTokenStore()], callers: callers, rounds: rounds)
            #expect(report == (loads: 1, swaps: 0, conflicts: 0, failures: 0))
        }
    }

    @Test func `needs a store`() async throws {
        await #expect(throws: SharedStoreViolation.self) { try await checkSharedTokenStore([]) }
    }
}
