import Interleavings
import Synchronization
import Testing

/// An actor that runs where the simulation says.
actor Ledger {
    private let executor: any SerialExecutor
    private var entries: [String] = []
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    init(_ executor: any SerialExecutor) { self.executor = executor }

    func enter(_ entry: String) { entries.append(entry) }
    func enterTwice(_ entry: String) async {
        entries.append(entry)
        await Task.yield()
        entries.append(entry)
    }
    var all: [String] { entries }
}

@Suite struct `Swift's own concurrency` {
    @Test(arguments: [Strategy.mixed(schedules: 100), .exhaustive(preemptions: 1, limit: 500)])
    func `runs under control: async let, groups and cancellation`(strategy: Strategy) async throws {
        try await explore(strategy, time: .whenIdle) { simulation in
            async let one = number(1)
            async let two = number(2)
            let both = await one + two
            try simulation.require(both == 3, "async let")

            let sum = await withTaskGroup { group in
                for child in 1...3 { group.addTask { await number(child) } }
                return await group.reduce(0, +)
            }
            try simulation.require(sum == 6, "task group")

            let children = Tally()
            await withDiscardingTaskGroup { group in
                for _ in 1...3 {
                    group.addTask {
                        await Task.yield()
                        children.next()
                    }
                }
            }
            try simulation.require(children.value == 3, "discarding group")

            let error = await #expect(throws: Stop.self) {
                try await withThrowingTaskGroup { group in
                    group.addTask { try await simulation.clock.sleep(for: .seconds(60)) }
                    group.addTask { throw Stop() }
                    while try await group.next() != nil {}
                }
            }
            try simulation.require(error != nil && simulation.clock.now.offset == .zero, "throwing group")
        }
    }

    @Test func `runs under control: streams, cancellation handlers and immediate tasks`() async throws {
        try await explore(.mixed(schedules: 100)) { simulation in
            let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
            let reader = simulation.spawn("reader") { await stream.reduce(0, +) }
            simulation.spawn("writer") {
                for number in 1...3 {
                    continuation.yield(number)
                    await Task.yield()
                }
                continuation.finish()
            }
            let sum = try await reader.value
            try simulation.require(sum == 6, "stream")

            let cancelled = Tally()
            let waiter = simulation.spawn("waiter") {
                await withTaskCancellationHandler {
                    while !Task.isCancelled { await Task.yield() }
                } onCancel: {
                    cancelled.next()
                }
            }
            waiter.cancel()
            try await waiter.value
            try simulation.require(cancelled.value <= 1, "handler")

            if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
                let begun = Tally()
                let task = Task.immediate(executorPreference: simulation.taskExecutor) {
                    begun.next()
                    await Task.yield()
                    return begun.next()
                }
                try simulation.require(begun.value == 1, "immediate")
                let end = await task.value
                try simulation.require(end == 2, "immediate")
            }
        }
    }

    @Test func `has priorities, which don't limit the schedules`() async throws {
        let orders = Journal()
        try await explore(.exhaustive()) { simulation in
            let order = Journal()
            for priority in [TaskPriority.low, .high] {
                _ = Task(executorPreference: simulation.taskExecutor, priority: priority) { order.note("\(priority.rawValue)") }
            }
            try await simulation.settle()
            orders.note(order.all.joined(separator: " "))
        }
        #expect(Set(orders.all) == ["17 25", "25 17"])
    }

    @Test func `enters a default actor in every order of arrival, but without doors not in every order`() async throws {
        let orders = Journal()
        let summary = try await Overrides.unaided {
            try await explore(.exhaustive()) { simulation in
                let cache = Plain()
                for name in ["a", "b"] { simulation.spawn(name) { await cache.enterTwice(name) } }
                try await simulation.settle()
                orders.note(await cache.entries.joined())
            }
        }
        #expect(summary.coverage.gaps == [.defaultActor])
        #expect(Set(orders.all) == ["aabb", "abab", "abba", "bbaa", "baba", "baab"])
    }

    @Test func `runs one job a step on an actor with the simulation's executor, which names the step`() async throws {
        let orders = Journal()
        let scenario: Scenario = { simulation in
            let ledger = Ledger(simulation.actorExecutor("ledger"))
            for name in ["a", "b"] { simulation.spawn(name) { await ledger.enterTwice(name) } }
            try await simulation.settle()
            let all = await ledger.all.joined()
            orders.note(all)
            try simulation.require(all != "abab", "alternating")
        }
        let summary = try await explore(.exhaustive(), countsFailures: true, scenario)
        #expect(summary.coverage.isAll)
        #expect(Set(orders.all).count == 6)
        let trace = try #require(summary.firstFailure).trace
        #expect(trace.steps.contains { $0.place == "ledger" && $0.task == "a" })
        #expect(trace.steps.contains { $0.place == "ledger" && $0.task == "b" })
    }

    @Test func `keeps a task's name on a default actor`() async throws {
        let found = try await failure(.replay("")) { simulation in
            let cache = Plain()
            for name in ["a", "b"] { simulation.spawn(name) { await cache.enterTwice(name) } }
            try await simulation.settle()
            throw Stop()
        }
        #expect(Set(found.trace.steps.map(\.task)).isSubset(of: ["scenario", "a", "b"]))
    }

    /// If it were two, schedules of yielding tasks would have twice as many choices.
    @Test func `makes a yield one step, because the engine reads the layout of jobs correctly`() async throws {
        let found = try await failure(.replay("")) { _ in
            await Task.yield()
            await Task.yield()
            throw Stop()
        }
        #expect(found.trace.steps.map(\.task) == ["scenario", "scenario", "scenario"])
    }

    @Test func `leaves serial queues their order, and gives concurrent queues none`() async throws {
        let serial = Journal()
        let concurrent = Journal()
        try await explore(.exhaustive()) { simulation in
            for (queue, orders) in [
                (simulation.serialQueue("serial"), serial), (simulation.concurrentQueue("concurrent"), concurrent),
            ] {
                let order = Journal()
                for name in ["a", "b"] { queue.async { order.note(name) } }
                try await simulation.settle()
                orders.note(order.all.joined())
            }
        }
        #expect(Set(serial.all) == ["ab"])
        #expect(Set(concurrent.all) == ["ab", "ba"])
    }
}

/// Yields inside its function.
actor Plain {
    private(set) var entries: [String] = []

    func enterTwice(_ entry: String) async {
        entries.append(entry)
        await Task.yield()
        entries.append(entry)
    }
}

@concurrent func number(_ number: Int) async -> Int {
    await Task.yield()
    return number
}
