import Interleavings
import InterleavingsEverything
import Synchronization
import TestBudgets
import Testing

@Suite struct `Programs of random shape` {
    /// Seeds of programs that have a few schedules, but not too many to run them all.
    private static let seeds = Array(
        (UInt64(1)...).lazy.filter { (2...most).contains(schedules(seed: $0).count) }.prefix(isThorough ? 60 : 15))
    private static let most = isThorough ? 5_000 : 500

    /// Returns the order of the operations in each schedule; stops at one more than `most`.
    private static func schedules(seed: UInt64) -> [[Int]] {
        var generator = ProgramGenerator(seed: seed)
        var orders: [[Int]] = []
        _ = ProgramInterpreter(generator.program()).forEachSchedule { order in
            orders.append(order)
            return orders.count <= most
        }
        return orders
    }

    @Test(arguments: seeds) func `have as many schedules and the same orders as a naive interpreter finds`(seed: UInt64)
        async throws
    {
        var generator = ProgramGenerator(seed: seed)
        let program = generator.program()
        let orders = Mutex<[[Int]]>([])
        let summary = try await explore(.exhaustive(), driving: .everything) { _ in
            let run = ProgramRun()
            await run.run(program)
            orders.withLock { $0.append(run.order) }
        }
        let expected = Self.schedules(seed: seed)
        #expect(summary.coverage.isAll)
        #expect(summary.schedules == expected.count, "\(program)")
        #expect(orders.withLock { Set($0) } == Set(expected), "\(program)")
    }

    @Test(arguments: seeds) func `fail again in the same way when a schedule is replayed`(seed: UInt64) async throws {
        var generator = ProgramGenerator(seed: seed)
        let program = generator.program()
        let last = Self.schedules(seed: seed).last ?? []
        let scenario: @Sendable (Simulation) async throws -> Void = { simulation in
            let run = ProgramRun()
            await run.run(program)
            try simulation.require(run.order != last, "\(run.order)")
        }
        let found = await #expect(throws: ScheduleFailure.self) {
            try await explore(.exhaustive(), driving: .everything, scenario)
        }
        let failure = try #require(found)
        for _ in 1...3 {
            let again = await #expect(throws: ScheduleFailure.self) {
                try await explore(.replay(failure.schedule), driving: .everything, scenario)
            }
            #expect(again?.diagram == failure.diagram)
        }
    }
}
