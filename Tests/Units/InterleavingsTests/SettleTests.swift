import Interleavings
import Testing

@Suite struct `Settling` {
    @Test(arguments: [TimeModel.whenIdle, .anytime])
    func `waits until nothing is left to do, and time moves meanwhile`(time: TimeModel) async throws {
        try await explore(.exhaustive(), time: time) { simulation in
            let done = Tally()
            for second in 1...2 {
                simulation.spawn("sleeper \(second)") {
                    try await simulation.clock.sleep(for: .seconds(second))
                    await Task.yield()
                    done.next()
                }
            }
            try await simulation.settle()
            try simulation.require(done.value == 2, "both are done")
            try simulation.require(simulation.clock.now.offset >= .seconds(2), "time moved")
        }
    }

    @Test func `at the present time does not wait for timers`() async throws {
        let summary = try await explore(.exhaustive()) { simulation in
            let done = Tally()
            simulation.spawn("sleeper") {
                done.next()
                try await simulation.clock.sleep(for: .seconds(1))
                done.next()
            }
            try await simulation.settle(waitsForTimers: false)
            try simulation.require(done.value == 1 && simulation.clock.now.offset == .zero, "asleep")
            try await simulation.clock.sleep(for: .seconds(1))
            try await simulation.settle(waitsForTimers: false)
            try simulation.require(done.value == 2, "awake")
        }
        #expect(summary.coverage.bounds == [.timeWhenIdle] && summary.coverage.isAllWithinBounds)
    }

    @Test func `at the present time ends even if a timer may fire at any time`() async throws {
        try await explore(.random(schedules: 200), time: .anytime) { simulation in
            let working = Tally()
            simulation.spawn("sleeper") { try await simulation.clock.sleep(for: .seconds(1)) }
            simulation.spawn("worker") {
                await Task.yield()
                working.next()
            }
            try await simulation.settle(waitsForTimers: false)
            try simulation.require(working.value == 1, "the work is done")
        }
    }

    @Test func `is possible for several tasks at once, and those that wait for timers continue last`() async throws {
        let orders = Journal()
        let summary = try await explore(.exhaustive()) { simulation in
            let order = Journal()
            simulation.spawn("sleeper") {
                try await simulation.clock.sleep(for: .seconds(1))
                order.note("sleeper")
            }
            for name in ["late 1", "late 2"] {
                simulation.spawn(name) {
                    try await simulation.settle()
                    order.note("late")
                }
            }
            simulation.spawn("now") {
                try await simulation.settle(waitsForTimers: false)
                order.note("now")
            }
            try await simulation.settle()
            orders.note(order.all.joined(separator: " "))
        }
        #expect(summary.coverage.bounds == [.timeWhenIdle] && summary.coverage.isAllWithinBounds)
        #expect(Set(orders.all).isSubset(of: ["now sleeper late late", "now sleeper late", "now sleeper"]))
    }

    @Test func `with an endless timer is a livelock`() async throws {
        let found = try await failure(.mixed(schedules: 2), stepLimit: 300) { simulation in
            simulation.spawn("ticker") { while true { try await simulation.clock.sleep(for: .seconds(1)) } }
            try await simulation.settle()
        }
        #expect(found.problem?.code == .livelock)
        #expect(found.problem?.tasks == ["ticker"])
        #expect("\(found)".contains("300 steps"))
        #expect("\(found)".contains("stepLimit"))
    }
}
