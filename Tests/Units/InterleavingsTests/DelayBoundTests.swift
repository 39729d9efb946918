@testable import Interleavings
import Testing
import TokenServiceConcurrency

/// Tasks that suspend after each step, so that no switch among them is a preemption.
@Suite struct `Bounding delays` {
    @Test(
        arguments: [
            // Without a delay there is one order: first come, first served. Each delay lets another task go first.
            (tasks: 2, delays: 0, schedules: 1), (2, 1, 2), (2, 2, 2), (3, 0, 1), (3, 1, 3), (3, 2, 5), (3, 3, 6), (3, 9, 6),
        ])
    func `explores each order within the bound once`(
        tasks: Int, delays: Int, schedules: Int
    ) async throws {
        let orders = Lock<Set<[Int]>>([])
        let summary = try await explore(.exhaustive(delays: delays)) { simulation in
            let order = Lock<[Int]>([])
            let queue = simulation.concurrentQueue("queue")
            for task in 0..<tasks { queue.async { order.withLock { $0.append(task) } } }
            try await simulation.settle()
            let seen = order.withLock { $0 }
            _ = orders.withLock { $0.insert(seen) }
        }
        #expect(summary.coverage.bounds == (schedules == (tasks == 2 ? 2 : 6) ? [] : [.delays(delays)]))
        #expect(summary.coverage.isAllWithinBounds)
        #expect(summary.schedules == schedules)
        #expect(orders.withLock { $0.count } == schedules)
    }

    @Test func `doesn't limit the values that a scenario chooses`() async throws {
        let summary = try await explore(.exhaustive(delays: 0)) { simulation in _ = simulation.choose("value", 5) }
        #expect(summary.schedules == 5)
    }
}
