import Dispatch
import Foundation
import Interleavings
import InterleavingsEverything
import TestBudgets
import Testing
import TokenServiceConcurrency

/// What still runs when a schedule's outcome is known: it must find what it relies on, or the process ends and right code is blamed.
@Suite struct `The end of a schedule` {
    /// Explores a program beside a task that fails, and expects no other failure.
    private func expectOnlyFound(
        _ strategy: Strategy = .mixed(schedules: .everyday(100, thorough: 1_000)), driving: Driving = .everythingAndQueues,
        _ program: @escaping @Sendable (Simulation) -> Void
    ) async throws {
        let summary = try await explore(strategy, granularity: .accesses, driving: driving, countsFailures: true) { simulation in
            program(simulation)
            simulation.spawn("failing") {
                interleavingPoint("fails next")
                try simulation.require(false, "found")
            }
            try await simulation.settle()
        }
        #expect(
            summary.failures == summary.schedules && "\(String(describing: summary.firstFailure))".contains("found"), "\(summary)"
        )
    }

    // GRDB: "not used on the correct thread" in schedule 2.
    @Test func `a block waits until its queue is free, and runs on that queue`() async throws {
        try await expectOnlyFound { simulation in
            let queue = DispatchQueue(label: "queue"), inside = Lock(0)
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    queue.sync {
                        dispatchPrecondition(condition: .onQueue(queue))
                        precondition(inside.withLock { $0 } == 0, "two at a time")
                        inside.withLock { $0 += 1 }
                        interleavingPoint("inside")
                        inside.withLock { $0 -= 1 }
                    }
                }
            }
        }
    }

    @Test func `code behind a semaphore's wait finds the result that was set before the signal`() async throws {
        try await expectOnlyFound { simulation in
            simulation.spawn("bridge") {
                let result = Lock<Int?>(nil), semaphore = DispatchSemaphore(value: 0)
                DispatchQueue(label: "work").async {
                    interleavingPoint("works")
                    result.withLock { $0 = 1 }
                    semaphore.signal()
                }
                semaphore.wait()
                precondition(result.withLock { $0 } == 1, "woken before the signal")
            }
        }
    }

    @Test func `code behind a group's wait finds the results of the group's blocks`() async throws {
        try await expectOnlyFound { simulation in
            simulation.spawn("bridge") {
                let results = Lock(0), group = DispatchGroup(), queue = DispatchQueue(label: "work", attributes: .concurrent)
                for _ in 1...2 {
                    queue.async(group: group) {
                        interleavingPoint("works")
                        results.withLock { $0 += 1 }
                    }
                }
                group.wait()
                precondition(results.withLock { $0 } == 2, "woken before the blocks ended")
            }
        }
    }

    @Test func `the explorer's own semaphore and lock work until the end as well`() async throws {
        try await expectOnlyFound(driving: .preferred) { simulation in
            let lock = InterleavedLock("lock"), semaphore = InterleavedSemaphore("semaphore"), inside = Lock(0)
            let result = Lock<Int?>(nil)
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    lock.withLock {
                        precondition(inside.withLock { $0 } == 0, "two at a time")
                        inside.withLock { $0 += 1 }
                        interleavingPoint("inside")
                        inside.withLock { $0 -= 1 }
                    }
                }
            }
            simulation.spawn("waits") {
                semaphore.wait()
                precondition(result.withLock { $0 } == 1, "woken before the signal")
            }
            simulation.spawn("signals") {
                interleavingPoint("works")
                result.withLock { $0 = 1 }
                semaphore.signal()
            }
        }
    }

    @Test func `a failure that keeps a lock shared by all schedules is reported, not a difference in the next schedule`()
        async throws
    {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(granularity: .accesses, driving: .everythingAndQueues) { simulation in
                simulation.spawn("keeps") { keptLock.withLock { DispatchSemaphore(value: 0).wait() } }
            }
        }
        let text = "\(try #require(failure))"
        #expect(text.contains("'keeps' waits for the semaphore"), "\(text)")
        #expect(text.contains("it and its locks stay as they are"), "\(text)")
    }

    @Test func `a thread whose signal never comes stays asleep, and the deadlock's report names it once`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.exhaustive(limit: 100), granularity: .accesses, driving: .everythingAndQueues) { simulation in
                let semaphore = DispatchSemaphore(value: 0), isSignalled = Lock(false)
                simulation.spawn("waits") {
                    semaphore.wait()
                    precondition(isSignalled.withLock { $0 }, "woken without a signal")
                }
                try await simulation.settle()
            }
        }
        let problem = try #require(failure?.underlying as? ExplorationProblem)
        #expect(problem.code == .deadlock && problem.tasks == ["waits"], "\(problem)")
        let text = try #require(failure).text
        #expect(text.ranges(of: "One thread waits for what can't come any more").count == 1, "\(text)")
    }
}

/// Held for ever by a thread of one test.
private let keptLock = NSLock()
