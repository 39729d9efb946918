@testable import Interleavings
import TestBudgets
import Testing

@Suite struct `A simulated process` {
    /// One task of a small program, with the text that it notes in each step.
    private struct Program {
        var steps: [String: [Character]]
        /// The tasks of the process.
        let inside: Set<String>
        var condition = Engine.Process.Condition.running

        /// Returns all orders of the steps in which a frozen process takes no step: `f` freezes it, `t` thaws it, `k` kills it.
        func orders() -> Set<String> {
            var orders: Set<String> = []
            for (task, remaining) in steps {
                guard let step = remaining.first, condition == .running || !inside.contains(task) else { continue }
                var next = self
                next.steps[task]?.removeFirst()
                switch step {
                case "f": next.condition = .frozen
                case "t": next.condition = .running
                case "k": next.condition = .killed
                default: break
                }
                orders.formUnion(next.orders().map { String(step) + $0 })
            }
            return orders.isEmpty ? [""] : orders
        }
    }

    @Test(arguments: isThorough ? ["k", "ft", "fk", "ftft", "ftk"] : ["k", "ft", "fk"], [Granularity.jobs, .accesses])
    func `can be frozen, thawed and killed between any two steps, and takes no step while it is frozen`(
        controls: String, granularity: Granularity
    ) async throws {
        let orders = Journal()
        let summary = try await explore(.exhaustive(), granularity: granularity) { simulation in
            let order = Journal(), app = simulation.process("app")
            @Sendable func run(_ steps: String, _ act: (Character) -> Void = { _ in }) async {
                for (index, step) in steps.enumerated() {
                    if index > 0 { await Task.yield() }
                    act(step)
                    order.note(String(step))
                }
            }
            app.spawn("a") { await run("aaa") }
            simulation.spawn("b") { await run("bb") }
            simulation.spawn("control") {
                await run(controls) { step in
                    switch step {
                    case "f": app.freeze()
                    case "t": app.thaw()
                    default: app.kill()
                    }
                }
            }
            try await simulation.settle()
            orders.note(order.all.joined())
        }
        let program = Program(
            steps: ["a": Array("aaa"), "b": Array("bb"), "control": Array(controls)], inside: ["a"])
        #expect(Set(orders.all) == program.orders())
        #expect(summary.coverage.isAllWithinBounds)
        // At the granularity of accesses, freezing and killing are separate stops.
        if granularity == .jobs { #expect(summary.schedules == program.orders().count) }
    }

    @Test func `that is killed leaves behind tasks that no report calls lost`() async throws {
        let begun = Tally(), ended = Tally()
        try await explore(.random(schedules: 50)) { simulation in
            let app = simulation.process("app")
            app.spawn("waits") {
                begun.next()
                defer { ended.next() }
                await waitForEver()
            }
            app.spawn("sleeps") {
                begun.next()
                defer { ended.next() }
                try await simulation.clock.sleep(for: .seconds(1))
                simulation.fail("it ran", at: "")
            }
            try await simulation.settle(waitsForTimers: false)
            app.kill()
            app.spawn("late") { simulation.fail("it began", at: "") }
            app.thaw()
            try await simulation.clock.sleep(for: .seconds(5))
        }
        #expect(begun.value > 0 && ended.value == begun.value / 2)
    }

    @Test(arguments: [Granularity.jobs, .accesses])
    func `owns the tasks that its tasks create, their sleeps and their queues`(granularity: Granularity) async throws {
        try await explore(.random(schedules: .everyday(60, thorough: 300)), granularity: granularity) { simulation in
            let app = simulation.process("app"), steps = Tally()
            let executor = simulation.taskExecutor
            app.spawn("parent") {
                let queue = simulation.serialQueue("queue")
                async let child: Void = { for _ in 1...9 { steps.next(); await Task.yield() } }()
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { for _ in 1...9 { steps.next(); await Task.yield() } }
                    group.addTask { for _ in 1...9 { steps.next(); try? await simulation.clock.sleep(for: .seconds(1)) } }
                    group.addTask { for _ in 1...9 { queue.async { steps.next() }; await Task.yield() } }
                    Task.detached(executorPreference: executor) { for _ in 1...9 { steps.next(); await Task.yield() } }
                    simulation.spawn("sibling") { for _ in 1...9 { steps.next(); await Task.yield() } }
                }
                await child
            }
            simulation.spawn("system") {
                for _ in 1...simulation.choose("turns", 12) + 1 { await Task.yield() }
                app.freeze()
                let seen = steps.value
                try await simulation.clock.sleep(for: .seconds(20))
                try simulation.require(steps.value == seen, "it went on")
                app.thaw()
            }
            try await simulation.settle()
            try simulation.require(steps.value == 54, "it ends: \(steps.value)")
        }
    }

    @Test func `that is thawed finds its timers due, at the present time`() async throws {
        try await explore(.exhaustive()) { simulation in
            let app = simulation.process("app"), times = Journal()
            for seconds in [1, 2, 9] {
                app.spawn("sleeper \(seconds)") {
                    try await simulation.clock.sleep(for: .seconds(seconds))
                    times.note("\(seconds) at \(simulation.clock.now.offset.components.seconds)")
                }
            }
            try await simulation.settle(waitsForTimers: false)
            app.freeze()
            try await simulation.clock.sleep(for: .seconds(5))
            try simulation.require(times.all.isEmpty, "none fires")
            app.thaw()
            try await simulation.settle()
            try simulation.require(times.all.sorted() == ["1 at 5", "2 at 5", "9 at 9"], "\(times.all)")
        }
    }

    @Test func `whose sleeping task was cancelled while it was frozen continues when it is thawed`() async throws {
        try await explore(.exhaustive()) { simulation in
            let app = simulation.process("app")
            let sleeper = app.spawn("sleeper") { try? await simulation.clock.sleep(for: .seconds(100)) }
            try await simulation.settle(waitsForTimers: false)
            app.freeze()
            sleeper.cancel()
            try await simulation.clock.sleep(for: .seconds(5))
            app.thaw()
            try await sleeper.value
            try simulation.require(simulation.clock.now.offset == .seconds(5), "at once")
        }
    }

    @Test func `that is never thawed is named in the deadlock's report`() async throws {
        let failure = try await failure(.exhaustive()) { simulation in
            let app = simulation.process("app")
            app.spawn("worker") { await Task.yield() }
            app.freeze()
            try await simulation.settle()
        }
        #expect(failure.problem?.code == .deadlock && failure.problem?.tasks == ["worker"])
        #expect("\(failure)".contains("The process 'app' is frozen."))
    }

    @Test func `shows in the report when it is frozen, thawed and killed`() async throws {
        let failure = try await failure(.exhaustive()) { simulation in
            let app = simulation.process("app")
            app.spawn("worker") { await waitForEver() }
            try await simulation.settle()
            simulation.spawn("system") {
                app.freeze()
                app.thaw()
                app.kill()
            }
            try await simulation.settle()
            try simulation.require(false, "for the report")
        }
        let events = failure.trace.steps.flatMap(\.events).map { "\($0.task) \($0.text)" }
        for event in ["system freezes 'app'", "worker is frozen", "worker is thawed", "system kills 'app'", "worker is killed"] {
            #expect(events.contains(event))
        }
        #expect("\(failure)".contains("is killed"))
    }

    @Test func `that is frozen while its thread holds a lock keeps it, and the others wait`() async throws {
        let found = Journal()
        try await explore(.exhaustive(preemptions: 3), granularity: .accesses) { simulation in
            let lock = InterleavedLock("file"), app = simulation.process("app"), isHeld = Tally(), order = Journal()
            app.spawn("holder") {
                lock.withLock {
                    isHeld.next()
                    interleavingPoint("in the lock")
                    order.note("holder")
                }
            }
            simulation.spawn("system") {
                app.freeze()
                let wasHeld = isHeld.value == 1 && order.count == 0
                try await simulation.clock.sleep(for: .seconds(1))
                if wasHeld { order.note("thaw") }
                app.thaw()
            }
            simulation.spawn("other") { lock.withLock { order.note("other") } }
            try await simulation.settle()
            let isInOrder = order.all == ["thaw", "holder", "other"]
            try simulation.require(isInOrder || !order.contains("thaw"), "\(order.all)")
            if isInOrder { found.note("yes") }
        }
        #expect(found.count > 0)
    }
}
