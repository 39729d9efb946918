import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Interleavings
import Testing

@Suite(.timeLimit(.minutes(10))) struct SimulatedSharedStoreTests {
    private static let one = Data("one".utf8)
    private static let two = Data("two".utf8)

    @Test func `a failing operation changes nothing, and the next one goes on`() async throws {
        let store = SimulatedSharedStore()
        store.failNext(.load)
        store.failNext(.swap)
        await #expect(throws: SimulatedSharedStore.Failure.self) { try await store.load() }
        await #expect(throws: SimulatedSharedStore.Failure.self) { try await store.swap(Self.one, ifAt: nil) }
        #expect(try await store.load() == nil)
        #expect(try await store.swap(Self.one, ifAt: nil) == .done(.init("1")))
        #expect(store.log == ["load fails", "swap fails", "load", "swap 1"])
    }

    @Test func `a swap whose answer is lost has taken effect`() async throws {
        let store = SimulatedSharedStore()
        store.loseNextResponses(2)
        await #expect(throws: SimulatedSharedStore.Failure.self) { try await store.swap(Self.one, ifAt: nil) }
        #expect(store.contents?.bytes == Self.one)
        // There is a conflict, which the service isn't told about either.
        await #expect(throws: SimulatedSharedStore.Failure.self) { try await store.swap(Self.two, ifAt: nil) }
        #expect(store.contents?.bytes == Self.one)
        #expect(store.log == ["swap 1, answer lost", "swap meets 1"])
    }

    @Test func `any number of operations can be planned to fail`() async throws {
        let store = SimulatedSharedStore()
        store.failNext(.load, -1)
        #expect(try await store.load() == nil)
        store.failNext(.load, .max)
        store.loseNextResponses(.max)
        for _ in 1...3 {
            await #expect(throws: SimulatedSharedStore.Failure.self) { try await store.load() }
            await #expect(throws: SimulatedSharedStore.Failure.self) { try await store.swap(Self.one, ifAt: nil) }
        }
    }

    @Test func `a planned conflict waits for a record, and has its bytes with a new revision`() async throws {
        let store = SimulatedSharedStore()
        store.conflictNext()
        let first = SharedRecord.Revision("1")
        #expect(try await store.swap(Self.one, ifAt: nil) == .done(first))
        let current = SharedRecord(Self.one, revision: .init("2"))
        #expect(try await store.swap(Self.two, ifAt: first) == .conflict(current))
        #expect(try await store.swap(Self.two, ifAt: current.revision) == .done(.init("3")))
    }

    @Test func `a store that is down fails until it is back, and keeps its record`() async throws {
        let store = SimulatedSharedStore()
        _ = try await store.swap(Self.one, ifAt: nil)
        store.isReachable = false
        await #expect(throws: SimulatedSharedStore.Failure.self) { try await store.load() }
        await #expect(throws: SimulatedSharedStore.Failure.self) { try await store.swap(Self.two, ifAt: .init("1")) }
        await #expect(throws: SimulatedSharedStore.Failure.self) {
            try await store.changedRecord(from: nil, atMost: .seconds(1))
        }
        store.isReachable = true
        #expect(try await store.load()?.bytes == Self.one)
    }

    @Test func `an operation takes effect in the middle of its latency`() {
        let stage = Stage(), clock = ManualClock()
        let store = SimulatedSharedStore(clock: clock, latency: .seconds(10))
        let swap = stage.start { try await store.swap(Self.one, ifAt: nil) }
        clock.advance(by: .seconds(4))
        stage.run()
        #expect(store.contents == nil)
        clock.advance(by: .seconds(1))
        stage.run()
        #expect(store.contents != nil && !swap.isDone)
        clock.advance(by: .seconds(5))
        stage.run()
        #expect(swap.value == .done(.init("1")))
    }

    @Test func `a wait for a change ends with the next swap`() {
        let stage = Stage(), store = SimulatedSharedStore()
        let wait = stage.start { try await store.changedRecord(from: nil, atMost: .seconds(1)) }
        #expect(!wait.isDone)
        _ = stage.start { try await store.swap(Self.one, ifAt: nil) }
        stage.run()
        #expect(wait.isDone)
    }

    @Test(arguments: [Granularity.jobs, .accesses])
    func `under every schedule, exactly one of two swaps at one revision is done`(granularity: Granularity) async throws {
        let summary = try await explore(.exhaustive(preemptions: 2), granularity: granularity) { simulation in
            let store = SimulatedSharedStore(clock: simulation.clock)
            let swaps = [Self.one, Self.two].map { bytes in
                simulation.spawn("writer of \(bytes.count)") { try await store.swap(bytes, ifAt: nil) }
            }
            var done = 0
            for swap in swaps { if case .done = try await swap.value { done += 1 } }
            try simulation.require(done == 1, "one is done")
        }
        #expect(summary.schedules > 1)
    }
}
