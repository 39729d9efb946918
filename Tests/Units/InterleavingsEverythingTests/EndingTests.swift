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

    // ServiceGroup of swift-service-lifecycle ends the process by such a task.
    @Test(arguments: [Driving.everything, .everythingAndQueues], [false, true])
    func `no sleep takes the end for its deadline`(driving: Driving, fails: Bool) async throws {
        let ends = Ends()
        let summary = try await explore(
            .mixed(schedules: 20), granularity: .accesses, driving: driving, countsFailures: true
        ) { simulation in
            simulation.spawn("starts limits") {
                Task { await ends.note("a task", limit: { try await Task.sleep(for: .seconds(60)) }) }
                Task { await ends.note("a task by the clock", limit: { try await simulation.clock.sleep(for: .seconds(60)) }) }
                Task {
                    await withTaskGroup { group in
                        group.addTask { await ends.note("a child", limit: { try await Task.sleep(for: .seconds(60)) }) }
                    }
                }
                Task { while true { await ends.note("a loop", limit: { try await Task.sleep(for: .seconds(60)) }) } }
                interleavingPoint("has started them")
                try simulation.require(!fails, "found")
            }
        }
        #expect(summary.schedules == 20 && summary.failures == (fails ? 20 : 0), "\(summary)")
        #expect(ends.all == [])
    }

    @Test func `no block and no blocked thread takes the end for its deadline`() async throws {
        let ends = Ends()
        try await expectOnlyFound(.mixed(schedules: 20)) { simulation in
            simulation.spawn("starts limits") {
                let queue = DispatchQueue(label: "queue", attributes: .concurrent)
                queue.asyncAfter(deadline: .now() + 60) { ends.note("a block") }
                queue.async { if DispatchSemaphore(value: 0).wait(timeout: .now() + 60) == .timedOut { ends.note("a thread") } }
            }
        }
        #expect(ends.all == [])
    }

    #if os(Linux) || os(macOS)
    @Test func `a limit that would end the process lets the report of the failure out`() async {
        await #expect(processExitsWith: .success) {
            let failure = await #expect(throws: ScheduleFailure.self) {
                try await explore(driving: .everything) { simulation in
                    Task {
                        try? await Task.sleep(for: .seconds(60))
                        preconditionFailure("It took too long.")
                    }
                    try simulation.require(false, "found")
                }
            }
            #expect("\(String(describing: failure))".contains("found"))
        }
    }
    #endif

    @Test func `a cancelled task wakes at the end, and its memory is freed`() async throws {
        final class Kept: Sendable {}
        let kept = Lock<[Weak<Kept>]>([]), ends = Ends()
        try await expectOnlyFound(.mixed(schedules: 20), driving: .everything) { simulation in
            simulation.spawn("sleeps") {
                let object = Kept()
                kept.withLock { $0.append(Weak(object)) }
                await withTaskGroup { group in
                    group.addTask { await ends.note("a child", limit: { try await Task.sleep(for: .seconds(60)) }) }
                }
                withExtendedLifetime(object) {}
            }
        }
        #expect(kept.withLock { $0 }.allSatisfy { $0.object == nil })
        #expect(ends.all == [])
    }

    @Test func `tasks that stay asleep are bounded, and the report names one`() async throws {
        @Sendable func explore(cancels: Bool, fails: Bool = false) async throws {
            var overrides = Overrides.current
            overrides.mostAsleep = 0
            try await Overrides.$current.withValue(overrides) {
                _ = try await Interleavings.explore(.mixed(schedules: 20), driving: .everything) { simulation in
                    simulation.spawn("begins a limit") {
                        let limit = Task { try await Task.sleep(for: .seconds(60)) }
                        await Task.yield()
                        if cancels { limit.cancel() }
                        try simulation.require(!fails, "found")
                    }
                }
            }
        }
        let problem = await #expect(throws: ExplorationProblem.self) { try await explore(cancels: false) }
        #expect(problem?.code == .sleepers)
        let text = problem?.text ?? ""
        #expect(text.contains("The last one is 'begins a limit.1'"), "\(text)")
        try await explore(cancels: true)
        // A failure is reported first.
        await #expect(throws: ScheduleFailure.self) { try await explore(cancels: false, fails: true) }
    }

    @Test func `a task that waits for one asleep ends with it, or not at all`() async throws {
        let ends = Ends()
        try await expectOnlyFound(.mixed(schedules: 20), driving: .everything) { simulation in
            simulation.spawn("waits") {
                await withCheckedContinuation { continuation in
                    Task {
                        try? await Task.sleep(for: .seconds(60))
                        continuation.resume()
                    }
                }
                ends.note("the sleep")
            }
        }
        #expect(ends.all == [])
    }

    /// The sleeps that ended by their deadlines.
    private final class Ends: Sendable {
        private let seen = Lock(Set<String>())

        var all: Set<String> { seen.withLock { $0 } }
        func note(_ name: String) { seen.withLock { _ = $0.insert(name) } }

        func note(_ name: String, limit: () async throws -> Void) async {
            if (try? await limit()) != nil { note(name) }
        }
    }

    private struct Weak<Object: AnyObject & Sendable>: Sendable {
        weak let object: Object?

        init(_ object: Object) { self.object = object }
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
