import TokenServiceConcurrency

/// One execution of a scenario, from its first task to the end of everything that it began.
struct Execution: Sendable {
    let engine: Engine
    private let simulation: Simulation

    /// Winding down may take this many steps even if the step limit is smaller.
    private static let endSteps = 1_000

    init(_ chooser: Chooser, _ settings: Settings, _ surroundings: Engine.Surroundings, records: Bool) {
        engine = Engine(chooser, settings, surroundings, records: records)
        let opened = settings.doors?.open(for: engine)
        simulation = Simulation(
            engine, taskExecutor: opened?.0, drivesEverything: settings.driving.isEverything)
        engine.state.withLock { $0.session = opened?.1 }
        engine.setPool(simulation.taskExecutor)
    }

    func run(waitsForOutside: Bool, _ scenario: @escaping Exploration.Scenario) -> Outcome {
        DrivenExecutions.run { drive(waitsForOutside: waitsForOutside, scenario) }
    }

    private func drive(waitsForOutside: Bool, _ scenario: @escaping Exploration.Scenario) -> Outcome {
        let (engine, simulation) = (engine, simulation)
        Simulation.$running.withValue(simulation) {
            _ = simulation.spawn("scenario") {
                do { try await scenario(simulation) } catch {
                    engine.fail(error, by: "scenario", "throws \(PlainText.beginning(of: error))")
                    throw error
                }
            }
            engine.run()
            engine.expectErrorsRead()
        }
        let mayHaveEscaped = waitsForOutside && engine.state.withLock { $0.mayHaveEscaped }
        let hasWaited = mayHaveEscaped && !engine.isReachedFromOutside()
        var outcome = engine.state.withLock { state in
            state.phase = .windingDown
            return Outcome(state, stepLimit: engine.stepLimit, hasWaited: hasWaited)
        }
        outcome.hasLeftThreads = end()
        return outcome
    }

    /// Ends everything that the scenario left behind: cancels its tasks, wakes sleepers, and runs all runnable work.
    ///
    /// - Returns: Whether there are controlled threads that don't end.
    private func end() -> Bool {
        let cancellations = engine.state.withLock { state in
            state.recorder = nil
            state.endLimit = state.steps + max(engine.stepLimit, Self.endSteps)
            return state.spawned.compactMap(\.cancel)
        }
        engine.doors.step { engine.cancel(cancellations) }
        engine.run()
        // Release these outside the lock: a deinit is foreign code. A task that never ends keeps only the engine alive.
        let left = engine.state.withLock { state in
            defer { state = Engine.State(endedAt: state.now) }
            return state
        }
        return left.hasLostThread || left.ready.contains { if case .thread = $0.work { true } else { false } }
    }
}

/// A hash of the steps and choices, to distinguish executions.
struct Fingerprint: Sendable, Equatable {
    private var hash: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func mix(_ value: Int) {
        hash = (hash ^ UInt64(bitPattern: Int64(value))) &* 0x100_0000_01b3
    }
}
