@testable import Interleavings
import Testing
import TokenServiceConcurrency

/// Check, await, set.
actor NaiveCache {
    private var value: Int?
    private let load: @Sendable () async -> Int

    init(load: @escaping @Sendable () async -> Int) {
        self.load = load
    }

    func get() async -> Int {
        if let value { return value }
        let loaded = await load()
        value = loaded
        return loaded
    }
}

/// Callers of a naive cache, which must load once.
@Sendable func naiveCallers(_ simulation: Simulation) async throws {
    try await naiveCallers(2, simulation)
}

/// This many of them.
@Sendable func naiveCallers(_ count: Int, _ simulation: Simulation) async throws {
    let loads = Lock(0)
    let cache = NaiveCache {
        let number = loads.withLock { count in
            count += 1
            return count
        }
        simulation.log("load \(number) begins")
        try? await simulation.clock.sleep(for: .seconds(1))
        simulation.log("load \(number) ends")
        return number
    }
    let callers = (1...count).map { number in simulation.spawn("caller \(number)") { await cache.get() } }
    for caller in callers { _ = try await caller.value }
    try simulation.require(loads.withLock { $0 } == 1, "one load for all")
}

@Suite struct `Exploring` {
    @Test func `finds that an actor is re-entrant, and shows how`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) { try await explore(.mixed(), naiveCallers) }
        #expect("\(failure!)".contains("one load for all"))
    }
}
