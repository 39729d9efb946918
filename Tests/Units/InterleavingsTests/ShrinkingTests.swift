import Dispatch
@testable import Interleavings
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite struct `Shrinking` {
    @Test func `leaves the one switch that a lost update needs`() async throws {
        for strategy in [Strategy.random(), .pct(), .mixed(), .exhaustive()] {
            let found = try await failure(strategy) { simulation in
                let number = Lock(0)
                for name in ["a", "b", "c"] {
                    simulation.spawn(name) {
                        await Task.yield()
                        let seen = number.withLock { $0 }
                        await Task.yield()
                        number.withLock { $0 = seen + 1 }
                    }
                }
                try await simulation.settle()
                try simulation.require(number.withLock { $0 } == 3, "no update is lost")
            }
            #expect(found.choices.count { $0 > 0 } == 1)
            #expect(found.problem?.detail == "no update is lost")
        }
    }

    @Test func `leaves an empty schedule if every schedule fails`() async throws {
        let found = try await failure(.random(seed: 3)) { simulation in
            for name in ["a", "b", "c"] { simulation.spawn(name) { await Task.yield() } }
            try await simulation.settle()
            throw Stop()
        }
        #expect(found.choices.isEmpty)
        #expect(found.underlying is Stop)
    }

    /// A simpler order fails in another way.
    @Test func `keeps the place of the failure`() async throws {
        for seed in 1...20 {
            let original = Journal()
            let found = try await failure(.random(schedules: 100, seed: UInt64(seed))) { simulation in
                let order = try await orderOfTwo(simulation)
                if order == "aabb" { original.note("first") }
                try simulation.require(order != "aabb", "first")
                if order == "abab" { original.note("second") }
                try simulation.require(order != "abab", "second")
            }
            #expect(found.problem?.detail == original.all.first)
        }
    }

    @Test func `does not depend on the values in a message`() async throws {
        for seed in 1...20 {
            let found = try await failure(.random(seed: UInt64(seed))) { simulation in
                let balance = Lock(0)
                for deposit in 0..<8 {
                    simulation.spawn("\(deposit)") {
                        let seen = balance.withLock { $0 }
                        await Task.yield()
                        balance.withLock { $0 = seen + 1 << deposit }
                    }
                }
                try await simulation.settle()
                let final = balance.withLock { $0 }
                try simulation.require(final == 255, "the balance is \(final), not 255")
            }
            #expect(found.choices.count { $0 > 0 } <= 1)
            #expect(found.isMinimal)
        }
    }

    /// Compares the result with all schedules of forty programs that fail in some orders.
    @Test func `calls a schedule minimal only if every other failing one has as many switches`() async throws {
        var needed: Set<Int> = []
        for program in 1...(isThorough ? 40 : 8) {
            let scenario: Scenario = { simulation in
                let order = Journal()
                for name in ["a", "b", "c"] {
                    simulation.spawn(name) {
                        for _ in 1...2 {
                            order.note(name)
                            await Task.yield()
                        }
                    }
                }
                try await simulation.settle()
                var hash = SplitMix64(seed: order.all.joined().utf8.reduce(UInt64(program)) { $0 &* 31 &+ UInt64($1) })
                try simulation.require(hash.below(60) > 0, "the order is \(order.all)")
            }
            guard let fewest = try fewestSwitches(scenario) else { continue }
            needed.insert(fewest)
            let found = try await failure(.random(schedules: 10_000), scenario)
            #expect(found.choices.count { $0 > 0 } == fewest)
            #expect(found.isMinimal)
        }
        #expect(needed.isSuperset(of: isThorough ? [0, 1, 2] : [0, 2]), "\(needed)")
    }

    /// The tasks must take turns, and there are 184,756 orders.
    @Test func `says how far it searched if many switches are needed`() async throws {
        let scenario: Scenario = { simulation in
            let order = Journal()
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    for _ in 1...10 {
                        order.note(name)
                        await Task.yield()
                    }
                }
            }
            try await simulation.settle()
            try simulation.require(!order.all.joined().hasPrefix("abababab"), "not in turns")
        }
        let found = try await failure(.random(schedules: 100_000), scenario)
        let switches = found.choices.count { $0 > 0 }
        #expect(switches > 4)
        #expect(!found.isMinimal)
        #expect("\(found)".contains("No schedule with at most 3 switches fails here: "), "\(found)")
        #expect("\(found)".contains("One with fewer than the present \(switches) may."))
    }

    @Test func `ends soon even if an execution is long`() async throws {
        let runs = Tally()
        let steps = 500
        let found = try await failure(.random(seed: 5)) { simulation in
            runs.next()
            for name in ["a", "b"] { simulation.spawn(name) { for _ in 1...steps { await Task.yield() } } }
            try await simulation.settle()
            throw Stop()
        }
        #expect(found.choices.isEmpty)
        #expect(runs.value <= 505)
        #expect(found.isMinimal)
    }

    @Test func `is not attempted for an escape, which can't be repeated`() async throws {
        let runs = Tally()
        let found = try await failure(.random(schedules: 5)) { simulation in
            runs.next()
            // It runs only once the scenario has suspended: a task resumed before that isn't an escape.
            let hasSuspended = DispatchSemaphore(value: 0)
            simulation.spawn("other") { hasSuspended.signal() }
            await withCheckedContinuation { waiter in
                DispatchQueue.global().async {
                    hasSuspended.wait()
                    waiter.resume()
                }
            }
        }
        #expect(found.problem?.code == .escape)
        #expect(runs.value == 2)
    }
}

/// Runs two tasks of two jobs each, and returns the order of their jobs.
private func orderOfTwo(_ simulation: Simulation) async throws -> String {
    let order = Journal()
    for name in ["a", "b"] {
        simulation.spawn(name) {
            order.note(name)
            await Task.yield()
            order.note(name)
        }
    }
    try await simulation.settle()
    return order.all.joined()
}

/// Runs all schedules, and returns the fewest switches of a failing one; `nil`: none fails.
private func fewestSwitches(_ scenario: @escaping Scenario) throws -> Int? {
    var exploration = Exploration(settings: Settings(), countsFailures: true, scenario: scenario)
    var search = DepthFirst(preemptions: nil, delays: nil)
    var fewest: Int?
    repeat {
        let outcome = exploration.execute(.depthFirst(search))
        if outcome.error != nil { fewest = min(fewest ?? .max, outcome.choices.count { $0 > 0 }) }
        guard case .depthFirst(let after) = outcome.chooser else { return fewest }
        search = after
    } while search.advance()
    return fewest
}
