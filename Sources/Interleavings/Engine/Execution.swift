import Dispatch
import TokenServiceConcurrency

/// One execution of a scenario, from spawning it to the end of all that it began.
struct Execution: Sendable {
    private let engine: Engine
    private let simulation: Simulation

    /// How many steps the ending may take, at least.
    private static let endSteps = 1_000

    init(_ chooser: Chooser, _ settings: Settings, crew: Crew?, records: Bool) {
        engine = Engine(chooser, settings, crew: crew, records: records)
        simulation = Simulation(engine)
    }

    func run(waitsForOutside: Bool, _ scenario: @escaping Exploration.Scenario) -> Outcome {
        let (engine, simulation) = (engine, simulation)
        Simulation.$current.withValue(simulation) {
            _ = simulation.spawn("scenario") {
                do { try await scenario(simulation) } catch {
                    engine.fail(error, by: "scenario", "throws \(error)")
                    throw error
                }
            }
            engine.run()
        }
        let isStuck = engine.state.withLock { $0.isStuck(stepLimit: engine.stepLimit) }
        let hasWaited = isStuck && waitsForOutside && !engine.hearsFromOutside()
        var outcome = engine.state.withLock { state in
            state.isWindingDown = true
            return Outcome(state, stepLimit: engine.stepLimit, hasWaited: hasWaited)
        }
        outcome.hasLeftThreads = end()
        return outcome
    }

    /// Ends what the scenario left: everybody is cancelled, sleepers wake, and what can run runs.
    ///
    /// - Returns: Whether there are controlled threads that don't end.
    private func end() -> Bool {
        let cancellations = engine.state.withLock { state in
            state.recorder = nil
            state.endLimit = state.steps + max(engine.stepLimit, Self.endSteps)
            return state.spawned.compactMap(\.cancel)
        }
        for cancel in cancellations { cancel() }
        engine.run()
        // Freed outside the lock: what a deinit does is foreign code. A task that waits for ever keeps the engine, but no more.
        let left = engine.state.withLock { state in
            defer { state = Engine.State(endedAt: state.now) }
            return state
        }
        return left.ready.contains { if case .thread = $0.work { true } else { false } }
    }
}

extension Engine {
    /// Waits for what may come back from outside, in real time, for telling an escape from a deadlock.
    ///
    /// As long as it takes somebody else outside to get up a few times, since a loaded machine is slow: half a second on one
    /// that isn't.
    func hearsFromOutside() -> Bool {
        let patience = DispatchSemaphore(value: 0)
        Task.detached {
            for _ in 1...5 { try? await ContinuousClock().sleep(for: .milliseconds(100)) }
            patience.signal()
        }
        // Other tests may keep the pool busy for minutes, under a sanitizer.
        let end = DispatchTime.now() + .seconds(600)
        while patience.wait(timeout: .now()) == .timedOut, .now() < end {
            if outside.wait(timeout: .now() + .milliseconds(20)) == .success { return true }
        }
        return outside.wait(timeout: .now()) == .success
    }
}

/// What tells two executions apart: who ran at each step, and what was chosen.
struct Fingerprint: Sendable, Equatable {
    private var hash: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func mix(_ value: Int) {
        hash = (hash ^ UInt64(bitPattern: Int64(value))) &* 0x100_0000_01b3
    }
}
