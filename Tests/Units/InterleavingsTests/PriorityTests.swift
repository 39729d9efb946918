@testable import Interleavings
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite struct `Probabilistic concurrency testing` {
    /// Each bug needs its jobs in the given order, whatever the other jobs do: as many constraints as there are steps in it.
    ///
    /// The bound is that of Burckhardt et al.; four standard deviations are allowed for.
    @Test(
        arguments: [["c1", "a1"], ["a1", "c1", "a2"]]
            + (isThorough ? [["a1", "c1", "a2", "c2"], ["b2", "c1", "b3", "c2"]] : []))
    func `finds a bug at least as often as its bound says`(order: [String]) async throws {
        let depth = order.count - 1
        let summary = try await explore(
            .pct(schedules: .everyday(1_000, thorough: 20_000), depth: depth, seed: 1), countsFailures: true
        ) { simulation in
            let seen = Journal()
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    for job in 1...3 {
                        seen.note("\(name)\(job)")
                        await Task.yield()
                    }
                }
            }
            try await simulation.settle()
            try simulation.require(seen.all.filter { order.contains($0) } != order, "not in this order")
        }
        // The scenario is a task too.
        let bound = Self.bound(tasks: 4, decisions: summary.mostChoices, depth: depth)
        let (runs, failures) = (Double(summary.schedules), Double(summary.failures))
        #expect(failures >= bound * runs - 4 * (bound * runs).squareRoot(), "\(failures / runs) is less than \(bound)")
    }

    /// Both tasks are lowered in the middle; their ranks decide which one continues first.
    @Test(.thorough, arguments: ["abcba", "abcab"])
    func `finds every order of two lowered tasks`(order: String) async throws {
        let summary = try await explore(.pct(schedules: 5_000, depth: 3), countsFailures: true) { simulation in
            let seen = Journal()
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    for _ in 0..<(name == "c" ? 1 : 2) {
                        seen.note(name)
                        await Task.yield()
                    }
                }
            }
            try await simulation.settle()
            try simulation.require(seen.all.joined() != order, "not in this order")
        }
        #expect(summary.failures > 5, "\(summary.failures)")
    }

    private static func bound(tasks: Int, decisions: Int, depth: Int) -> Double {
        1 / Double(tasks * (1..<depth).reduce(1) { product, _ in product * decisions })
    }

    /// Three tasks run in turn, each lowered once: their ranks decide which of two runs first afterwards.
    @Test func `lowers tasks to ranks in any order`() {
        var orders: [[Int]: Int] = [:]
        for seed in 0..<60_000 {
            var priorities = Priorities(random: SplitMix64(seed: UInt64(seed)), depth: 3, length: 2)
            // Decisions 1 and 2 lower the task with the highest priority; the third shows the ranks.
            let order = [[1, 2, 3], [1, 2, 3], [1, 2, 3]].map { $0[priorities.choose(among: $0)] }
            let lowered = [1, 2, 3].filter { $0 != order[2] }
            let next = lowered[priorities.choose(among: lowered)]
            orders[order + [next], default: 0] += 1
        }
        // Six initial orders, two orders of ranks.
        #expect(orders.count == 12)
        #expect(orders.values.allSatisfy { abs($0 - 5_000) < 350 }, "\(orders)")
    }

    @Test func `gives each task its own priority, with every order equally likely`() {
        var orders: [[Int]: Int] = [:]
        for seed in 0..<24_000 {
            var priorities = Priorities(random: SplitMix64(seed: UInt64(seed)), depth: 1, length: 10)
            var (left, order) = ([1, 2, 3, 4], [Int]())
            while !left.isEmpty { order.append(left.remove(at: priorities.choose(among: left))) }
            orders[order, default: 0] += 1
        }
        #expect(orders.count == 24)
        #expect(orders.values.allSatisfy { abs($0 - 1_000) < 150 }, "\(orders)")
    }

    @Test func `lowers tasks at different decisions, even if there are no more decisions than that`() {
        for seed in 0..<100 {
            let priorities = Priorities(random: SplitMix64(seed: UInt64(seed)), depth: 5, length: 4)
            #expect(priorities.ranks.keys.sorted() == [1, 2, 3, 4])
            #expect(priorities.ranks.values.sorted() == [0, 1, 2, 3])
        }
    }
}

@Suite struct `The count of distinct schedules` {
    @Test func `equals all orders of an exhaustive exploration`() async throws {
        let summary = try await explore(.exhaustive(), twoTasksUnawaited(jobs: 5, orders: Journal()))
        #expect(summary.distinctSchedules == 252)
    }

    @Test(arguments: [Strategy.random(schedules: 300), .pct(schedules: 300), .mixed(schedules: 300)])
    func `counts an order once however often it ran`(strategy: Strategy) async throws {
        let journal = Journal()
        let summary = try await explore(strategy, twoTasksUnawaited(jobs: 3, orders: journal))
        #expect(summary.schedules == 300)
        #expect(summary.distinctSchedules == Set(journal.all).count)
        #expect("\(summary)".hasPrefix("300 schedules (\(summary.distinctSchedules) distinct), "))
    }

    @Test func `is exact up to its capacity, and close above it`() {
        var count = DistinctCount()
        for number in 0..<300_000 {
            count.insert([number % 1_000, number / 1_000])
            count.insert([0, 0])
            if number == 65_535 { #expect(count.value == 65_536) }
        }
        #expect(abs(count.value - 300_000) < 6_000, "\(count.value)")
    }

    @Test func `is never more than the number of counted schedules`() {
        var count = DistinctCount()
        var excess = 0
        for number in 1...300_000 {
            count.insert([number])
            excess = max(excess, count.value - number)
        }
        #expect(excess == 0)
    }

    @Test(.thorough) func `is exact for an exhaustive exploration of any length`() async throws {
        let summary = try await explore(.exhaustive()) { simulation in
            simulation.spawn("a") {}
            _ = simulation.choose("first", 300) + simulation.choose("second", 300)
        }
        #expect(summary.distinctSchedules == summary.schedules)
        #expect("\(summary)".hasPrefix("\(summary.schedules) schedules, "))
    }
}
