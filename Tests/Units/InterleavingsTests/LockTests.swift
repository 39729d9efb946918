import Dispatch
@testable import Interleavings
import Synchronization
import Testing

@Suite struct `Locks on controlled threads` {
    @Test(arguments: [Strategy.exhaustive(), .mixed(schedules: 100)])
    func `exclude each other, so that no update is lost`(strategy: Strategy) async throws {
        let summary = try await explore(strategy, granularity: .accesses) { simulation in
            let (lock, shared) = (InterleavedLock("lock"), Unprotected())
            for name in ["a", "b"] { simulation.spawn(name) { lock.withLock { shared.number += 1 } } }
            try await simulation.settle()
            try simulation.require(shared.number == 2, "no update is lost")
        }
        #expect(summary.coverage.isAll == (strategy == .exhaustive()))
    }

    @Test func `cause a deadlock when taken in two orders, and the report names them`() async throws {
        let found = try await failure(.exhaustive(preemptions: 1), granularity: .accesses, twoLocks)
        #expect(found.problem?.code == .deadlock)
        #expect(found.problem?.tasks == ["forth", "back"])
        #expect("\(found)".contains("'forth' waits for the lock 'second'"))
        #expect("\(found)".contains("'back' waits for the lock 'first'"))
    }

    @Test func `cause a deadlock when taken twice`() async throws {
        let found = try await failure(.replay(""), granularity: .accesses) { _ in
            let lock = InterleavedLock("lock")
            lock.withLock { lock.withLock {} }
        }
        #expect(found.problem?.code == .deadlock)
        #expect("\(found)".contains("'scenario' waits for the lock 'lock'"))
    }

    @Test func `rethrow an error and are released`() async throws {
        try await explore(.replay(""), granularity: .accesses) { simulation in
            let lock = InterleavedLock("lock")
            #expect(throws: Stop.self) { try lock.withLock { throw Stop() } }
            lock.withLock {}
        }
    }

    @Test func `are plain locks for real threads`() {
        let (lock, shared) = (InterleavedLock("lock"), Unprotected())
        DispatchQueue.concurrentPerform(iterations: 1_000) { _ in lock.withLock { shared.number += 1 } }
        #expect(shared.number == 1_000)
    }

    @Test(arguments: [true, false])
    func `that the explorer doesn't know block a thread, which is reported and disturbs no later schedule`(
        comesBack: Bool
    ) async throws {
        let gate = DispatchSemaphore(value: 0)
        let settings = Settings(granularity: .accesses, stepSeconds: 0.3)
        var exploration = Exploration(settings: settings, countsFailures: false) { simulation in
            simulation.spawn("blocked") { gate.wait() }
            simulation.spawn("other") {
                defer { if comesBack { gate.signal() } }
                for _ in 1...5 { interleavingPoint() }
                try? await simulation.clock.sleep(for: .seconds(1))
                for _ in 1...5 { interleavingPoint() }
            }
        }
        let failure = try #require(throws: ScheduleFailure.self) { try exploration.run(.pct(schedules: 20)) }
        #expect(failure.problem?.code == .blockedThread)
        #expect(failure.problem?.tasks == ["blocked"])
        #expect("\(failure)".contains("0.3 seconds"))
        #expect("\(failure)".contains("InterleavedLock"))
        // Release blocked threads: a semaphore must not be freed while a thread waits for it.
        for _ in 1...3 { gate.signal() }
    }
}

@Sendable func twoLocks(_ simulation: Simulation) async throws {
    let locks = [InterleavedLock("first"), InterleavedLock("second")]
    for (name, order) in [("forth", locks), ("back", locks.reversed())] {
        simulation.spawn(name) { order[0].withLock { order[1].withLock {} } }
    }
}
