@testable import Interleavings
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
            #expect(found.schedule.choices.count { $0 > 0 } == 1)
            #expect(found.problem?.detail == "no update is lost")
        }
    }

    @Test func `leaves an empty schedule if every schedule fails`() async throws {
        let found = try await failure(.random(seed: 3)) { simulation in
            for name in ["a", "b", "c"] { simulation.spawn(name) { await Task.yield() } }
            try await simulation.settle()
            throw Stop()
        }
        #expect(found.schedule.choices.isEmpty)
        #expect(found.underlying is Stop)
    }

    /// An order that is easier to have fails in another way.
    @Test func `keeps the kind of failure`() async throws {
        let orders = ["aabb": "first", "abab": "second"]
        for seed in 1...20 {
            let original = Journal()
            let found = try await failure(.random(schedules: 100, seed: UInt64(seed))) { simulation in
                let order = Journal()
                for name in ["a", "b"] {
                    simulation.spawn(name) {
                        order.note(name)
                        await Task.yield()
                        order.note(name)
                    }
                }
                try await simulation.settle()
                guard let message = orders[order.all.joined()] else { return }
                original.note(message)
                try simulation.require(false, message)
            }
            #expect(found.problem?.detail == original.all.first)
        }
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
        #expect(found.schedule.choices.isEmpty)
        #expect(runs.value <= 505)
    }

    @Test func `is not tried on an escape, which cannot be repeated`() async throws {
        let runs = Tally()
        let found = try await failure(.random(schedules: 5)) { simulation in
            runs.next()
            simulation.spawn("other") { await Task.yield() }
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(found.problem?.code == .escape)
        #expect(runs.value == 2)
    }
}
