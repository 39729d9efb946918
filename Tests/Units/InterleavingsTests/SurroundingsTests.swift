import Dispatch
import TokenServiceConcurrency
@testable import Interleavings
import Testing

@Suite struct `Surroundings` {
    @Test @MainActor func `an exploration can run from the main actor without blocking it`() async throws {
        let found = try await failure(.mixed(), naiveCallers)
        #expect(found.problem?.detail == "one load for all")
        MainActor.assertIsolated()
        let turns = Tally()
        let other = Task { @MainActor in turns.next() }
        try await explore(.random(schedules: 50), naiveCallersAlone)
        _ = await other.value
        #expect(turns.value == 1)
    }

    @Test func `an exploration can run under another executor preference`() async throws {
        try await withTaskExecutorPreference(Elsewhere()) {
            let found = try await failure(.mixed(), naiveCallers)
            #expect(found.problem?.detail == "one load for all")
        }
    }

    @Test(arguments: [Granularity.jobs, .accesses])
    func `an exploration inside a scenario is part of the step`(granularity: Granularity) async throws {
        let summary = try await explore(.random(schedules: 5), granularity: granularity) { simulation in
            simulation.spawn("other") { await Task.yield() }
            let inner = try await explore(.exhaustive(), granularity: granularity) { inner in
                #expect(Simulation.current === inner)
                inner.spawn("a") { await Task.yield() }
                inner.spawn("b") { await Task.yield() }
            }
            try simulation.require(inner.schedules == 6, "complete")
            try simulation.require(Simulation.current === simulation, "its own again")
            await Task.yield()
        }
        #expect(summary.schedules == 5)
    }

    @Test(arguments: [Strategy.exhaustive(), .mixed(schedules: 5)])
    func `a scenario that starts nothing is an error, except in a replay`(strategy: Strategy) async throws {
        let problem = await #expect(throws: ExplorationProblem.self) { try await explore(strategy) { _ in } }
        #expect(problem?.code == .nothingToExplore)
        #expect("\(problem!)".contains("simulation.spawn"))
        let replay = try await explore(.replay("")) { _ in }
        #expect((replay.schedules, replay.steps, replay.mostChoices) == (1, 1, 0))
        #expect(Simulation.current == nil)
    }

    @Test func `a scenario with one order passes, and its summary says so`() async throws {
        let summary = try await explore(.exhaustive()) { simulation in try await simulation.settle() }
        #expect(summary.schedules == 1 && summary.coverage.isAll)
        #expect("\(summary)".contains("nothing in the scenario could have run in another order"))
    }

    @Test func `a scenario that throws a cancellation error fails the schedule`() async throws {
        let found = try await failure(.mixed(schedules: 5)) { _ in throw CancellationError() }
        #expect(found.underlying is CancellationError)
    }

    @Test func `a failed requirement of a spawned task fails the schedule`() async throws {
        let found = try await failure(.mixed(schedules: 5)) { simulation in
            simulation.spawn("requirer") { try simulation.require(1 > 2, "more") }
            await waitForEver()
        }
        #expect(found.problem?.code == .requirement)
        #expect("\(found)".contains("more"))
    }

    @Test func `a simulation that is used after its end does not hang`() async throws {
        let kept = Lock<Simulation?>(nil)
        try await explore(.replay("")) { simulation in kept.withLock { $0 = simulation } }
        let simulation = try #require(kept.withLock { $0 })
        let value = try await simulation.spawn("late") {
            await Task.yield()
            return 1
        }.value
        #expect(value == 1)
        await #expect(throws: CancellationError.self) { try await simulation.clock.sleep(for: .seconds(1)) }
        await #expect(throws: CancellationError.self) { try await simulation.settle() }
        #expect(simulation.choose("late", 5) == 0)
        simulation.log("late")
        await withCheckedContinuation { waiter in simulation.serialQueue("late").async { waiter.resume() } }
        #expect(throws: ExplorationProblem.self) { try simulation.require(false, "late") }
    }

    @Test func `tasks of the same name get different names in the trace`() async throws {
        let found = try await failure(.replay("")) { simulation in
            for _ in 1...3 { simulation.spawn("caller") { simulation.log("calls") } }
            simulation.spawn("caller 2") {}
            try await simulation.settle()
            throw Stop()
        }
        let names = found.trace.steps.map(\.task).filter { $0 != "scenario" }
        #expect(names == ["caller", "caller (2)", "caller (3)", "caller 2"])
        let calls = found.trace.steps.flatMap(\.events).filter { $0.text == "calls" }
        #expect(calls.map(\.task) == ["caller", "caller (2)", "caller (3)"])
    }

    @Test func `an object released at the end of an execution may use the simulation`() async throws {
        try await explore(.mixed(schedules: 5)) { simulation in
            let closer = Closer { simulation.serialQueue("closing").async { simulation.log("closed") } }
            simulation.spawn("holder") {
                try await simulation.settle()
                withExtendedLifetime(closer) {}
            }
            _ = Task(executorPreference: simulation.taskExecutor) {
                try await simulation.clock.sleep(for: .seconds(1))
                withExtendedLifetime(closer) {}
            }
        }
    }
}

/// Callers with a separate cache each, so that nothing fails.
@Sendable func naiveCallersAlone(_ simulation: Simulation) async throws {
    for number in 1...2 {
        simulation.spawn("caller \(number)") { await NaiveCache { number }.get() }
    }
}

/// Runs an action in its `deinit`.
private final class Closer: Sendable {
    private let close: @Sendable () -> Void
    init(close: @escaping @Sendable () -> Void) { self.close = close }
    deinit { close() }
}

/// A queue's thread.
private final class Elsewhere: TaskExecutor {
    private let queue = DispatchQueue(label: "elsewhere")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
