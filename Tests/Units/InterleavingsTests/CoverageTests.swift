import Interleavings
import Testing
import TokenServiceConcurrency

/// An exploration must report correctly which orders it tried: “all” means that none was left out.
@Suite struct `Coverage` {
    /// Three tasks number themselves under a lock and then tell an actor, whose log is in order only by chance.
    private static func numbered(_ log: @escaping @Sendable (Simulation) -> @Sendable (Int) async -> [Int]) -> Scenario {
        { simulation in
            let (number, add) = (Tally(), log(simulation))
            let tasks = (1...3).map { name in simulation.spawn("\(name)") { await add(number.next()) } }
            var logs: [[Int]] = []
            for task in tasks { logs.append(try await task.value) }
            let all = logs.max { $0.count < $1.count } ?? []
            try simulation.require(all == all.sorted(), "in order")
        }
    }

    @Test func `is not all orders if a default actor ran without doors, whose calls run in the order of arrival`() async throws {
        let summary = try await Overrides.unaided {
            try await explore(
                .exhaustive(),
                Self.numbered { _ in
                    let log = DefaultLog()
                    return { await log.add($0) }
                })
        }
        #expect(!summary.coverage.isAll)
        #expect(summary.coverage.gaps == [.defaultActor])
        #expect("\(summary.coverage)".contains("simulation.actorExecutor"))
    }

    @Test func `claims all orders with the simulation's executor, which finds what a default actor hides`() async throws {
        let summary = try await explore(
            .exhaustive(), countsFailures: true,
            Self.numbered { simulation in
                let log = DrivenLog(simulation.actorExecutor("log"))
                return { await log.add($0) }
            })
        #expect(summary.failures > 0)
        #expect(summary.coverage.isAll)
        #expect("\(summary.coverage)" == "all orders of jobs")
    }

    @Test func `names the bounds that cut off orders, and only those`() async throws {
        let scenario = twoTasksUnawaited(jobs: 3, orders: Journal())
        let bounded = try await explore(.exhaustive(preemptions: 1), scenario).coverage
        #expect(bounded.bounds == [.preemptions(1)] && bounded.isAllWithinBounds && !bounded.isAll)
        #expect("\(bounded)" == "all orders of jobs with at most 1 preemption")
        #expect(try await explore(.exhaustive(preemptions: 9, delays: 9), scenario).coverage.isAll)
        let limited = try await explore(.exhaustive(delays: 2, limit: 2), scenario).coverage
        #expect(limited.gaps == [.scheduleLimit] && !limited.isAllWithinBounds)
    }

    @Test(arguments: [Strategy.mixed(schedules: 9), .random(schedules: 9), .pct(schedules: 9), .replay("")])
    func `of a sample doesn't claim all orders, even if the sample contains them all`(strategy: Strategy) async throws {
        let summary = try await explore(strategy, twoTasksUnawaited(jobs: 1, orders: Journal()))
        #expect(summary.coverage.gaps == [.sample])
    }

    @Test func `names the time model as a bound only if a timer was pending while work could run`() async throws {
        let alone = try await explore(.exhaustive()) { simulation in
            try await simulation.clock.sleep(for: .seconds(1))
            for name in ["a", "b"] { simulation.spawn(name) {} }
        }
        #expect(alone.coverage.isAll)
        let scenario: Scenario = { simulation in
            simulation.spawn("sleeper") { try await simulation.clock.sleep(for: .seconds(1)) }
            simulation.spawn("worker") { await Task.yield() }
        }
        let idle = try await explore(.exhaustive(), time: .whenIdle, scenario)
        #expect(idle.coverage.bounds == [.timeWhenIdle])
        #expect("\(idle)".contains("time whenIdle"))
        #expect(try await explore(.exhaustive(), time: .anytime, scenario).coverage.isAll)
    }

    @Test func `doesn't claim all orders after an escape`() async throws {
        let summary = try await explore(.exhaustive(), countsFailures: true) { simulation in
            for name in ["a", "b"] { simulation.spawn(name) {} }
            await Task.detached { try? await Task.sleep(for: .milliseconds(50)) }.value
        }
        #expect(summary.coverage.gaps == [.escape])
    }
}

private actor DefaultLog {
    private var entries: [Int] = []

    func add(_ entry: Int) -> [Int] {
        entries.append(entry)
        return entries
    }
}

private actor DrivenLog {
    private let executor: any SerialExecutor
    private var entries: [Int] = []
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    init(_ executor: any SerialExecutor) { self.executor = executor }

    func add(_ entry: Int) -> [Int] {
        entries.append(entry)
        return entries
    }
}
