import Interleavings
import InterleavingsEverything
import Synchronization
import TestBudgets
import Testing

@Suite struct `Orders of queues` {
    private static let programs = [
        QueueProgram(name: "a serial queue", tasks: [[.async(0, [.mark(1)])], [.async(0, [.mark(2)])], [.async(0, [.mark(3)])]]),
        QueueProgram(
            name: "two serial queues", queues: [false, false],
            tasks: [[.async(0, [.mark(1)]), .async(1, [.mark(2)])], [.async(0, [.mark(3)]), .async(1, [.mark(4)])]]),
        QueueProgram(
            name: "a concurrent queue with a barrier", queues: [true],
            tasks: [
                [.async(0, [.mark(1)]), .async(0, [.mark(2)], isBarrier: true), .async(0, [.mark(3)])], [.async(0, [.mark(4)])],
            ]),
        QueueProgram(
            name: "sync on a serial queue",
            tasks: [[.sync(0, [.mark(1)]), .sync(0, [.mark(2)])], [.sync(0, [.mark(3)]), .sync(0, [.mark(4)])]]),
        QueueProgram(
            name: "sync among blocks of a concurrent queue", queues: [true],
            tasks: [
                [.async(0, [.mark(1)]), .sync(0, [.mark(2)], isBarrier: true)], [.sync(0, [.mark(3)]), .async(0, [.mark(4)])],
            ]),
        QueueProgram(
            name: "sync inside sync", queues: [false, false],
            tasks: [[.sync(0, [.mark(1), .sync(1, [.mark(2)])])], [.sync(0, [.mark(3), .sync(1, [.mark(4)])])]]),
        QueueProgram(
            name: "a semaphore", queues: [true],
            tasks: [[.wait, .mark(1)], [.mark(2), .signal, .mark(3)], [.async(0, [.wait, .mark(4)]), .signal]]),
        QueueProgram(
            name: "a group", queues: [false, true],
            tasks: [
                [.asyncInGroup(0, [.mark(1)]), .asyncInGroup(1, [.mark(2)]), .waitForGroup, .mark(3)], [.sync(0, [.mark(4)])],
            ]),
    ]

    @Test(arguments: programs) func `are as many as brute force counts`(_ program: QueueProgram) async throws {
        try await compare(program, .jobs)
    }

    /// Those with the most schedules run only in thorough runs; one has too many.
    private static let stoppingPrograms = programs.filter { program in
        let isLarge = ["a group", "sync on a serial queue"].contains(program.name)
        return program.name != "two serial queues" && (isThorough || !isLarge)
    }

    @Test(arguments: stoppingPrograms)
    func `are as many as brute force counts if threads stop at each call`(_ program: QueueProgram) async throws {
        try await compare(program, .accesses)
    }

    private func compare(_ program: QueueProgram, _ granularity: Granularity) async throws {
        let seen = Mutex<Set<[Int]>>([])
        let summary = try await explore(.exhaustive(), granularity: granularity, driving: .everythingAndQueues) { simulation in
            let run = QueueRun(program)
            for acts in program.tasks { simulation.spawn("task") { run.run(acts) } }
            try await simulation.settle()
            seen.withLock { _ = $0.insert(run.marks) }
        }
        let expected = QueueModel.orders(of: program, stopsEverywhere: granularity == .accesses)
        #expect(summary.schedules == expected.count)
        #expect(seen.withLock { $0 } == expected.marks)
        #expect(summary.coverage.isAll)
    }
}
