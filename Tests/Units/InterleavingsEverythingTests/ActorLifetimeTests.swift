import Interleavings
import Synchronization
import TestBudgets
import Testing
import TokenServiceConcurrency

@testable import InterleavingsEverything

/// Counts objects that were made and freed.
private final class Census: Sendable {
    private let made = Atomic(0), freed = Atomic(0)

    func add() { made.add(1, ordering: .relaxed) }
    func remove() { freed.add(1, ordering: .relaxed) }

    var total: Int { made.load(ordering: .acquiring) }
    var living: Int { made.load(ordering: .acquiring) - freed.load(ordering: .acquiring) }
}

private actor Guest {
    private let census: Census
    private var visits = 0

    init(_ census: Census) {
        self.census = census
        census.add()
    }

    deinit { census.remove() }

    func visit() async {
        visits += 1
        await Task.yield()
        assertIsolated()
        visits += 1
        await withCheckedContinuation { $0.resume() }
    }

    /// Starts a task on the actor that nothing awaits.
    func linger(_ simulation: Simulation) {
        Task {
            await visit()
            try? await simulation.clock.sleep(until: simulation.clock.now.advanced(by: .seconds(1)))
            visits += 1
        }
    }
}

#if os(Linux) || os(macOS)
/// To the runtime a default actor's executor is the actor with a foreign witness table: reference counting must still be correct
/// for each.
@Suite struct `Default actors of very many schedules` {
    @Test func `are all freed, with their executions`() async throws {
        await #expect(processExitsWith: .success) {
            let census = Census(), schedules = Int.everyday(100, thorough: 20_000)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for driving in [Driving.preferred, .preferred, .preferred, .everything] {
                    group.addTask {
                        try await explore(.random(schedules: schedules), driving: driving) { try await Self.host($0, census) }
                    }
                }
                try await group.waitForAll()
            }
            #expect(census.total >= 4 * schedules * 5)
            // Jobs that arrive after their execution run on a separate queue.
            let end = ContinuousClock.now + .seconds(60)
            while census.living + ActorExecutor.known > 0, .now < end { await Task.yield() }
            #expect(census.living == 0)
            #expect(ActorExecutor.known == 0)
        }
    }

    /// Actors that many tasks call, that are released while their own code runs, that live on, or that nothing has called.
    private static func host(_ simulation: Simulation, _ census: Census) async throws {
        let shared = Guest(census)
        _ = Guest(census)
        let callers = (1...2).map { number in
            simulation.spawn("caller \(number)") {
                await shared.visit()
                await Guest(census).visit()
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 1...2 { group.addTask { await shared.visit() } }
        }
        await Guest(census).linger(simulation)
        if simulation.choose("waits", 2) == 1 { for caller in callers { try await caller.value } }
    }
}
#endif
