import Dispatch
import TokenServiceConcurrency

/// One execution of a scenario, from spawning it to the end of everything it began.
struct Execution: Sendable {
    private let engine: Engine
    private let simulation: Simulation

    /// How many steps the ending may take, at the least.
    private static let endSteps = 1_000

    init(_ chooser: Chooser, _ settings: Settings, threads: ControlledThreads?, records: Bool) {
        engine = Engine(chooser, settings, threads: threads, records: records)
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
        let hasWaited = isStuck && waitsForOutside && !engine.isResumedFromOutside()
        var outcome = engine.state.withLock { state in
            state.isWindingDown = true
            return Outcome(state, stepLimit: engine.stepLimit, hasWaited: hasWaited)
        }
        outcome.hasLeftThreads = end()
        return outcome
    }

    /// Ends what the scenario left behind: cancels its tasks, wakes sleepers, and runs what can run.
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
        // Freed outside the lock: a deinit is foreign code. A task that never ends keeps only the engine alive.
        let left = engine.state.withLock { state in
            defer { state = Engine.State(endedAt: state.now) }
            return state
        }
        return left.ready.contains { if case .thread = $0.work { true } else { false } }
    }
}

extension Engine {
    /// Waits in real time for a resumption from outside, to tell an escape from a deadlock.
    ///
    /// Waits as long as an outside task takes to sleep five times: half a second, longer on a loaded machine.
    func isResumedFromOutside() -> Bool {
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

/// A hash of what ran at each step and what was chosen, to tell two executions apart.
struct Fingerprint: Sendable, Equatable {
    private var hash: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func mix(_ value: Int) {
        hash = (hash ^ UInt64(bitPattern: Int64(value))) &* 0x100_0000_01b3
    }
}
