@testable import Interleavings
import Testing
import TokenServiceConcurrency

@Suite struct `Virtual time` {
    @Test func `begins at zero and moves only to the next deadline`() async throws {
        let times = Journal()
        try await explore(.replay("")) { simulation in
            times.note("\(simulation.clock.now.offset)")
            try await simulation.clock.sleep(for: .seconds(3))
            times.note("\(simulation.clock.now.offset)")
            try await simulation.clock.sleep(until: simulation.clock.now.advanced(by: .milliseconds(1)))
            times.note("\(simulation.clock.now.offset)")
        }
        #expect(times.all.prefix(3) == ["0.0 seconds", "3.0 seconds", "3.001 seconds"])
    }

    @Test func `moves only when nothing can run, so that work takes no time`() async throws {
        let summary = try await explore(.exhaustive()) { simulation in
            simulation.spawn("works") {
                for _ in 1...3 {
                    await Task.yield()
                    try simulation.require(simulation.clock.now.offset == .zero, "time moved while work was pending")
                }
            }
            simulation.spawn("sleeps") { try await simulation.clock.sleep(for: .nanoseconds(1)) }
        }
        #expect(summary.coverage.bounds == [.timeWhenIdle] && summary.coverage.isAllWithinBounds)
    }

    @Test func `may move at any time, so that a timer fires while work is pending`() async throws {
        let found = try await failure(.exhaustive(), time: .anytime) { simulation in
            simulation.spawn("works") {
                await Task.yield()
                try simulation.require(simulation.clock.now.offset == .zero, "slow")
            }
            simulation.spawn("sleeps") { try await simulation.clock.sleep(for: .seconds(1)) }
        }
        #expect(found.problem?.detail == "slow")
        #expect(found.trace.steps.contains { $0.isTime })
        #expect(found.replayLine.contains("time: .anytime"))
    }

    /// A limiter that gives each caller a turn, and assumes that the caller wakes up on time.
    @Test func `has two models, of which each strategy uses the usual one unless told otherwise`() async throws {
        let scenario: Scenario = { simulation in
            let next = Lock(Duration.zero)
            let passed = Lock<[Duration]>([])
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    let turn = next.withLock { next in
                        let turn = max(next, simulation.clock.now.offset)
                        next = turn + .seconds(1)
                        return turn
                    }
                    try await simulation.clock.sleep(for: turn - simulation.clock.now.offset)
                    passed.withLock { $0.append(simulation.clock.now.offset) }
                }
            }
            try await simulation.settle()
            let times = passed.withLock { $0.sorted() }
            try simulation.require(times[1] - times[0] >= .seconds(1), "a second between two")
        }
        for strategy in [Strategy.mixed(schedules: 300), .random(schedules: 100), .pct(schedules: 100), .exhaustive()] {
            let idle = try await explore(strategy, scenario)
            #expect(idle.timeModels == [.whenIdle])
            #expect("\(idle)".contains("; time whenIdle;"))
        }
        let found = try await failure(.mixed(schedules: 300), time: .anytime, scenario)
        #expect(found.time == .anytime && found.number < 50)
        #expect(found.replayLine.contains("time: .anytime"))
        let again = try await failure(.replay(found.schedule), time: .anytime, scenario)
        #expect(again.trace == found.trace)
    }

    /// The answer takes half as long as the limit allows.
    @Test func `doesn't move past a limit twice as long as the work unless told to, and then the report names the timer`()
        async throws
    {
        let scenario: Scenario = { simulation in
            let isDone = Tally()
            simulation.spawn("work") {
                try await simulation.clock.sleep(for: .seconds(1))
                isDone.next()
            }
            simulation.spawn("limit") {
                try await simulation.clock.sleep(for: .seconds(2))
                try simulation.require(isDone.value == 1, "done in time")
            }
        }
        try await explore(.mixed(schedules: 200), scenario)
        let late = try await failure(.mixed(schedules: 200), time: .anytime, scenario)
        let lines = late.text.split(separator: "\n")
        #expect(lines[0].contains(", time anytime) failed: "), "\(lines[0])")
        #expect(lines[1].contains("the timer of 'limit' fired although 'work' could run"), "\(lines[1])")
    }

    @Test func `follows the model in the environment, if there is one`() async throws {
        let scenario: Scenario = { simulation in
            simulation.spawn("a") {}
            try await simulation.settle()
        }
        try await Overrides.$current.withValue(Overrides(time: .anytime)) {
            let mixed = try await explore(.mixed(schedules: 9), time: .whenIdle, scenario)
            #expect(mixed.timeModels == [.anytime])
            let exhaustive = try await explore(.exhaustive(), scenario)
            #expect(exhaustive.timeModels == [.anytime])
        }
    }

    /// `sleeps` has two halves with the time step between them, and `works` has two jobs: the orders of 2 jobs and 3 events.
    @Test func `is explored in all orders of work and timers`() async throws {
        let summary = try await explore(.exhaustive(), time: .anytime) { simulation in
            simulation.spawn("works") { await Task.yield() }
            simulation.spawn("sleeps") { try await simulation.clock.sleep(for: .seconds(1)) }
        }
        #expect(summary.schedules == 10)
    }

    @Test func `wakes tasks that are due at once in every order`() async throws {
        let orders = Journal()
        let summary = try await explore(.exhaustive()) { simulation in
            let order = Journal()
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    try await simulation.clock.sleep(for: .seconds(5))
                    order.note(name)
                    if order.count == 3 { orders.note(order.all.joined()) }
                }
            }
        }
        #expect(summary.coverage.bounds == [.timeWhenIdle] && summary.coverage.isAllWithinBounds)
        #expect(Set(orders.all).count == 6)
        // One factor is the order in which they fall asleep, the other the order in which they wake.
        #expect(summary.schedules == 36)
    }

    @Test func `wakes a thousand sleepers in the order of their deadlines`() async throws {
        let last = Journal()
        try await explore(.replay(""), stepLimit: 100_000) { simulation in
            let sleepers = (0..<1_000).map { number in
                simulation.spawn("\(number)") {
                    try await simulation.clock.sleep(for: .seconds(number % 100))
                    try simulation.require(simulation.clock.now.offset == .seconds(number % 100), "on time")
                }
            }
            for sleeper in sleepers { try await sleeper.value }
            last.note("\(simulation.clock.now.offset)")
        }
        #expect(last.all.last == "99.0 seconds")
    }

    @Test(arguments: [Duration.zero, .seconds(-1), .seconds(Int64.min)])
    func `does not move for a past deadline, but lets other tasks run`(duration: Duration) async throws {
        let orders = Journal()
        try await explore(.exhaustive()) { simulation in
            let order = Journal()
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    order.note(name)
                    try await simulation.clock.sleep(for: duration)
                    order.note(name)
                    if order.count == 4 { orders.note(order.all.joined()) }
                }
            }
            try await simulation.settle()
            try simulation.require(simulation.clock.now.offset == .zero, "no time passed")
        }
        #expect(Set(orders.all).count == 6)
    }

    @Test func `reaches the end of the longest duration`() async throws {
        try await explore(.replay("")) { simulation in
            try await simulation.clock.sleep(for: .seconds(Int64.max))
            try simulation.require(simulation.clock.now.offset == .seconds(Int64.max), "it is late")
        }
    }

    @Test func `ends the sleepers that are left at the end, without a failure`() async throws {
        let ends = Journal()
        try await explore(.random(schedules: 20)) { simulation in
            _ = Task(executorPreference: simulation.taskExecutor) {
                do { try await simulation.clock.sleep(for: .seconds(60)) } catch is CancellationError { ends.note("cancelled") }
            }
            try await simulation.settle(waitsForTimers: false)
        }
        #expect(ends.count == 21)
    }
}
