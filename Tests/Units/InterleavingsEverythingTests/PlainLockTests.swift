#if os(Linux)
import Foundation
import Interleavings
import InterleavingsEverything
import Synchronization
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Code whose locks aren't marked for the explorer.
@Suite struct `Plain locks` {
    private static let ways: [Driving] = [.everything, .everythingAndQueues]

    private func failure(
        _ driving: Driving = .everything, _ program: @escaping @Sendable (Simulation) async throws -> Void
    ) async throws -> ScheduleFailure {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(granularity: .accesses, driving: driving, program)
        }
        return try #require(failure)
    }

    private func expectRight(
        _ driving: Driving = .everything, _ program: @escaping @Sendable (Simulation) async throws -> Void
    ) async throws {
        for strategy in [Strategy.exhaustive(limit: .everyday(200, thorough: 2_000)), .mixed(schedules: 60)] {
            try await explore(strategy, granularity: .accesses, driving: driving, program)
        }
    }

    @Test(arguments: ways) func `taken in two orders are a deadlock, which names who holds what`(_ driving: Driving) async throws
    {
        let failure = try await failure(driving) { simulation in
            let one = NSLock(), other = NSLock()
            simulation.spawn("a") { nest(one, other) }
            simulation.spawn("b") { nest(other, one) }
        }
        #expect((failure.underlying as? ExplorationProblem)?.code == .deadlock, "\(failure)")
        let text = "\(failure.underlying)"
        #expect(text.contains("'a' waits for the lock ") && text.contains(", which 'b' holds"), "\(text)")
        #expect(text.contains("'b' waits for the lock ") && text.contains(", which 'a' holds"), "\(text)")
    }

    @Test(arguments: ways) func `taken in one order aren't reported`(_ driving: Driving) async throws {
        try await expectRight(driving) { simulation in
            let one = NSLock(), other = NSRecursiveLock(), entered = Lock(0), sum = Lock(0)
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    one.withLock {
                        other.withLock {
                            other.withLock {
                                entered.withLock { $0 += 1 }
                                interleavingPoint("inside")
                                precondition(entered.withLock { $0 } == 1, "two at a time")
                                entered.withLock { $0 -= 1 }
                            }
                        }
                        sum.withLock { $0 += 1 }
                    }
                }
            }
            try await simulation.settle()
            try simulation.require(sum.withLock { $0 } == 2, "a call is lost")
        }
    }

    @Test func `of the system let a writer in alone and readers in together`() async throws {
        let together = Notes()
        try await expectRight { simulation in
            let table = Table()
            for name in ["reader", "other reader"] {
                simulation.spawn(name) {
                    table.read { readers in if readers == 2 { together.add("two") } }
                }
            }
            simulation.spawn("writer") { table.write() }
        }
        #expect(!together.all.isEmpty)
    }

    @Test func `let a check before the lock and a change after it be found`() async throws {
        let failure = try await failure { simulation in
            let lock = NSLock(), value = Lock<Int?>(nil), made = Lock(0)
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    if lock.withLock({ value.withLock { $0 } }) != nil { return }
                    made.withLock { $0 += 1 }
                    lock.withLock { value.withLock { $0 = 1 } }
                }
            }
            try await simulation.settle()
            try simulation.require(made.withLock { $0 } == 1, "made twice")
        }
        #expect("\(failure.underlying)".contains("made twice"))
    }

    @Test func `with conditions hand over a value that was made`() async throws {
        try await expectRight { simulation in
            let condition = NSCondition(), isMade = Lock(false)
            for name in ["waits", "waits too"] {
                simulation.spawn(name) { receive(isMade, condition) }
            }
            simulation.spawn("makes") {
                condition.withLock {
                    isMade.withLock { $0 = true }
                    condition.broadcast()
                }
            }
        }
    }

    @Test func `with a condition whose signal comes too early are a deadlock at once`() async throws {
        let failure = try await failure { simulation in
            let condition = NSCondition()
            simulation.spawn("waits") { condition.withLock { condition.wait() } }
            simulation.spawn("signals") { condition.withLock { condition.signal() } }
        }
        #expect("\(failure.underlying)".contains("'waits' waits for the condition "), "\(failure.underlying)")
    }

    @Test func `whose conditions have a time limit wait in virtual time`() async throws {
        try await expectRight { simulation in
            let condition = NSCondition()
            simulation.spawn("waits") {
                let isSignalled = condition.withLock { condition.wait(until: Date(timeIntervalSinceNow: 3_600)) }
                try simulation.require(!isSignalled && simulation.clock.now.offset >= .seconds(3_599), "\(simulation.clock.now)")
            }
        }
    }

    /// Code that is inlined takes a free `Mutex`, so that a thread can't stop there; the point is in between.
    @Test func `of Synchronization taken in two orders are a deadlock, and the report names their holders`() async throws {
        let failure = try await failure { simulation in
            let pair = Pair()
            simulation.spawn("a") { pair.nest() }
            simulation.spawn("b") { pair.nestTheOtherWay() }
        }
        // Found at once: a step without a known holder counts as blocked after 20 seconds instead, which is another problem.
        #expect((failure.underlying as? ExplorationProblem)?.code == .deadlock, "\(failure)")
        let text = "\(failure.underlying)"
        #expect(text.contains("'a' waits for the lock ") && text.contains(", which 'b' holds"), "\(text)")
        #expect(text.contains("'b' waits for the lock ") && text.contains(", which 'a' holds"), "\(text)")
    }

    @Test func `of Synchronization held at an interleaving point make no thread sleep`() async throws {
        let summary = try await explore(.exhaustive(limit: 2_000), granularity: .accesses, driving: .everything) { simulation in
            let pair = Pair()
            for name in ["a", "b"] { simulation.spawn(name) { pair.nest() } }
            try await simulation.settle()
            try simulation.require(pair.sum == 2, "a call is lost")
        }
        #expect(summary.coverage.isAll, "\(summary)")
    }

    @Test func `of Synchronization that a thread outside holds for a moment add no point`() async throws {
        let pair = Pair(), isOver = Lock(false)
        func steps() async throws -> Int {
            let summary = try await explore(.random(schedules: 20), granularity: .accesses, driving: .everything) { simulation in
                simulation.spawn("a") { for _ in 1...1_000 { _ = pair.sum } }
            }
            return summary.steps
        }
        let alone = try await steps()
        Thread.detachNewThread { while !isOver.withLock({ $0 }) { _ = pair.sum } }
        defer { isOver.withLock { $0 = true } }
        #expect(try await steps() == alone)
    }

    /// Without doors they have no point, but the kernel says who holds them.
    @Test func `that aren't driven also cause a deadlock when taken in two orders, which the report names at once`() async throws
    {
        let failure = try await failure(.preferred) { simulation in
            let one = NSLock(), other = NSLock()
            simulation.spawn("a") { nest(one, other, "between") }
            simulation.spawn("b") { nest(other, one, "between") }
        }
        // A step without a known holder counts as blocked after 20 seconds instead, and the problem is another one.
        let problem = try #require(failure.underlying as? ExplorationProblem)
        #expect(problem.code == .deadlock && "\(problem)".contains("waits for a lock, which '"), "\(problem)")
    }
}

private func nest(_ outer: NSLock, _ inner: NSLock, _ point: String? = nil) {
    outer.lock()
    if let point { interleavingPoint(point) }
    inner.lock()
    inner.unlock()
    outer.unlock()
}

private func receive(_ isMade: borrowing Lock<Bool>, _ condition: NSCondition) {
    condition.lock()
    while !isMade.withLock({ $0 }) { condition.wait() }
    condition.unlock()
}

/// Two locks of Synchronization, with a point after the outer one is taken.
private final class Pair: Sendable {
    private let one = Mutex(0)
    private let other = Mutex(0)

    var sum: Int { one.withLock { $0 } }

    func nest() {
        one.withLock { one in
            interleavingPoint("between")
            other.withLock { $0 += 1 }
            one += 1
        }
    }

    func nestTheOtherWay() {
        other.withLock { other in
            interleavingPoint("between")
            one.withLock { $0 += 1 }
            other += 1
        }
    }
}

/// Has a lock of the system for readers and writers.
///
/// `@unchecked`: the lock's memory isn't moved, and its count of readers has a lock of its own.
@safe private final class Table: @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
    private let inside = Lock(0)

    init() { unsafe pthread_rwlock_init(lock, nil) }

    deinit { unsafe lock.deallocate() }

    func read(_ body: (Int) -> Void) {
        unsafe pthread_rwlock_rdlock(lock)
        inside.withLock { $0 += 1 }
        interleavingPoint("reads")
        body(inside.withLock { $0 })
        inside.withLock { $0 -= 1 }
        unsafe pthread_rwlock_unlock(lock)
    }

    func write() {
        unsafe pthread_rwlock_wrlock(lock)
        interleavingPoint("writes")
        precondition(inside.withLock { $0 } == 0, "a reader is inside")
        unsafe pthread_rwlock_unlock(lock)
    }
}
#endif
