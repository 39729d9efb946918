@testable import Interleavings
import Testing
import TokenServiceConcurrency

/// A number without any synchronisation.
///
/// Safe to share as long as one thread runs at a time, as in an exploration.
final class Unprotected: @unchecked Sendable {
    @Interleaved("number") var number = 0
}

@Suite struct `Controlled threads` {
    /// Each task has three pieces: up to its read, up to its write, and the rest.
    ///
    /// Of the 20 orders of two such tasks 12 have
    /// both reads before the last write; of the 6 with at most one preemption 2, of the 14 with two 6.
    @Test(arguments: [(Int?.none, 20, 12), (0, 2, 0), (1, 6, 2), (2, 14, 6)])
    func `show a lost update in as many schedules as counted by hand`(
        preemptions: Int?, schedules: Int, failures: Int
    ) async throws {
        let summary = try await explore(
            .exhaustive(preemptions: preemptions), granularity: .accesses, countsFailures: true, lostUpdate)
        #expect(summary.coverage.bounds == preemptions.map { [.preemptions($0)] } ?? [])
        #expect(summary.coverage.isAllWithinBounds)
        #expect(summary.schedules == schedules)
        #expect(summary.failures == failures)
    }

    @Test func `are not used at the granularity of jobs, where the update is never lost`() async throws {
        let summary = try await explore(.exhaustive(), lostUpdate)
        #expect(summary.coverage.isAll)
        #expect(summary.schedules == 2)
    }

    @Test func `note reads and writes in the trace`() async throws {
        let found = try await failure(.exhaustive(preemptions: 1), granularity: .accesses, lostUpdate)
        #expect(found.choices.count { $0 > 0 } == 1)
        let accesses = found.trace.steps.flatMap(\.events).map(\.text).filter {
            $0.hasSuffix("number: 0") || $0.contains("writes")
        }
        #expect(accesses == ["reads number: 0", "reads number: 0", "writes number: 1", "writes number: 1"])
        #expect(found.replayLine.contains("granularity: .accesses"))
        let again = try await failure(.replay(found.schedule), granularity: .accesses, lostUpdate)
        #expect(again.trace == found.trace)
    }

    @Test func `run one at a time`() async throws {
        let running = Lock(0)
        try await explore(.mixed(schedules: 100), granularity: .accesses) { simulation in
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    for _ in 1...3 {
                        let others = running.withLock { count in
                            defer { count += 1 }
                            return count
                        }
                        try simulation.require(others == 0, "one at a time")
                        running.withLock { $0 -= 1 }
                        interleavingPoint()
                        await Task.yield()
                    }
                }
            }
        }
    }

    @Test func `run actors, groups, queues and timers as usual`() async throws {
        let summary = try await explore(.mixed(schedules: 100), granularity: .accesses) { simulation in
            let ledger = Ledger(simulation.actorExecutor("ledger"))
            let plain = Plain()
            let queue = simulation.serialQueue("queue")
            let queued = Journal()
            await withDiscardingTaskGroup { group in
                for name in ["a", "b"] {
                    group.addTask {
                        await ledger.enterTwice(name)
                        interleavingPoint("between")
                        await plain.enterTwice(name)
                        queue.async {
                            queued.note(name)
                            interleavingPoint("in the queue")
                            queued.note(name)
                        }
                        try? await simulation.clock.sleep(for: .seconds(1))
                    }
                }
            }
            try await simulation.settle()
            let entries = await ledger.all.count + plain.entries.count
            try simulation.require(entries == 8, "all entered")
            try simulation.require(["aabb", "bbaa"].contains(queued.all.joined()), "one block at a time")
        }
        #expect(summary.failures == 0)
    }

    @Test func `may spin until another thread is done, which is not a livelock`() async throws {
        for strategy in [Strategy.replay(""), .mixed(schedules: 20), .exhaustive(preemptions: 1, limit: 20)] {
            try await explore(strategy, granularity: .accesses) { simulation in
                let flag = Unprotected()
                simulation.spawn("spinner") { while flag.number == 0 {} }
                simulation.spawn("worker") { flag.number = 1 }
            }
        }
    }

    @Test func `that spin endlessly are a livelock, which ends a count because the threads are lost`() async throws {
        let error = await #expect(throws: ScheduleFailure.self) {
            try await explore(
                .mixed(schedules: 100), granularity: .accesses, stepLimit: 200, countsFailures: true
            ) { simulation in
                let flag = Unprotected()
                simulation.spawn("spinner") { while flag.number == 0 {} }
            }
        }
        #expect(error?.problem?.code == .livelock)
        #expect(error?.problem?.tasks == ["spinner"])
    }

    @Test func `are as many as there are tasks`() async throws {
        try await explore(.replay(""), granularity: .accesses) { simulation in
            let arrived = Tally()
            for number in 1...150 {
                simulation.spawn("\(number)") {
                    arrived.next()
                    while arrived.value < 150 { interleavingPoint() }
                }
            }
        }
    }

    @Test func `ignore interleaving points outside an exploration`() {
        interleavingPoint("anywhere")
        let unprotected = Unprotected()
        unprotected.number += 1
        #expect(unprotected.number == 1)
        #expect(InterleavedLock("lock").withLock { 2 } == 2)
    }

    @Test func `evaluate labels only for reports, and labels may use the simulation`() async throws {
        let labels = Tally()
        let scenario: Scenario = { simulation in
            interleavingPoint("\(labels.next()) at \(simulation.clock.now)")
            throw Stop()
        }
        let found = try await failure(.replay(""), granularity: .accesses, scenario)
        #expect(found.trace.steps.flatMap(\.events).contains { $0.text == "1 at 0.0 seconds" })
        #expect(labels.value == 1)
    }
}

@Sendable func lostUpdate(_ simulation: Simulation) async throws {
    let shared = Unprotected()
    for name in ["a", "b"] { simulation.spawn(name) { shared.number += 1 } }
    try await simulation.settle()
    try simulation.require(shared.number == 2, "no update is lost")
}
