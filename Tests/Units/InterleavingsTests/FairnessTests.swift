import Interleavings
import TestBudgets
import Testing

@Suite struct `Fairness` {
    /// Each schedule of an exhaustive search may pass over a task for thousands of steps.
    private static let most = Int.everyday(20, thorough: 200)
    private static let some = Int.everyday(12, thorough: 60)

    private static let strategies = [
        Strategy.replay(""), .random(schedules: some), .pct(schedules: some), .mixed(schedules: some),
        .exhaustive(preemptions: 0, limit: most), .exhaustive(preemptions: 1, limit: most), .exhaustive(limit: most),
    ]

    @Test(arguments: strategies)
    func `waiting by yielding is not a livelock`(strategy: Strategy) async throws {
        try await explore(strategy, stepLimit: 5_000) { simulation in
            let flag = Tally()
            simulation.spawn("waiter") { while flag.value == 0 { await Task.yield() } }
            simulation.spawn("worker") {
                for _ in 1...5 { await Task.yield() }
                flag.next()
            }
        }
    }

    @Test(arguments: strategies)
    func `two tasks that wait for a third by yielding are not a livelock`(strategy: Strategy) async throws {
        try await explore(strategy, stepLimit: 5_000) { simulation in
            let flag = Tally()
            let turns = Tally()
            for parity in 0...1 {
                simulation.spawn("player \(parity)") {
                    while flag.value == 0 {
                        if turns.value % 2 == parity { turns.next() }
                        await Task.yield()
                    }
                }
            }
            simulation.spawn("worker") {
                for _ in 1...5 { await Task.yield() }
                flag.next()
            }
        }
    }

    @Test(arguments: strategies)
    func `a ticker beside a working task is not a livelock, though timers may fire at any time`(strategy: Strategy) async throws {
        try await explore(strategy, time: .anytime, stepLimit: 5_000) { simulation in
            let flag = Tally()
            simulation.spawn("ticker") { while flag.value == 0 { try await simulation.clock.sleep(for: .seconds(1)) } }
            simulation.spawn("worker") {
                for _ in 1...5 { await Task.yield() }
                flag.next()
            }
        }
    }

    @Test(arguments: strategies)
    func `polling the clock is not a livelock, though timers may fire at any time`(strategy: Strategy) async throws {
        try await explore(strategy, time: .anytime, stepLimit: 5_000) { simulation in
            simulation.spawn("sleeper") { try await simulation.clock.sleep(for: .seconds(1)) }
            while simulation.clock.now.offset == .zero { await Task.yield() }
        }
    }

    @Test func `a task that was passed over too often is picked at every step from then on, not once in a hundred`() async throws
    {
        try await explore(.pct(schedules: Self.some), stepLimit: 5_000) { simulation in
            let flag = Tally()
            simulation.spawn("waiter") { while flag.value == 0 { await Task.yield() } }
            simulation.spawn("worker") {
                for _ in 1...200 { await Task.yield() }
                flag.next()
            }
        }
    }

    @Test func `a task that yields endlessly is a livelock, which the report names`() async throws {
        let found = try await failure(.mixed(schedules: 10), stepLimit: 500) { simulation in
            simulation.spawn("spinner") { while !Task.isCancelled { await Task.yield() } }
            simulation.spawn("innocent") {}
        }
        #expect(found.problem?.code == .livelock)
        #expect(found.problem?.tasks == ["spinner"])
    }
}
