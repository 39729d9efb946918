import TokenServiceConcurrency

/// One execution of a scenario, from its first task to the end of everything that it began.
struct Execution: Sendable {
    let engine: Engine
    private let simulation: Simulation
    private let rootName: String

    /// Winding down may take this many steps even if the step limit is smaller.
    private static let endSteps = 1_000

    init(_ chooser: Chooser, _ settings: Settings, _ surroundings: Engine.Surroundings, records: Bool) {
        rootName = settings.rootName
        engine = Engine(chooser, settings, surroundings, records: records)
        let opened = settings.doors?.open(for: engine)
        simulation = Simulation(
            engine, taskExecutor: opened?.0, drivesEverything: settings.driving.isEverything)
        engine.state.withLock { $0.session = opened?.1 }
        engine.setPool(simulation.taskExecutor)
    }

    func run(waitsForOutside: Bool, mostAsleep: Int, _ scenario: @escaping Exploration.Scenario) -> Outcome {
        DrivenExecutions.run { drive(waitsForOutside: waitsForOutside, mostAsleep: mostAsleep, scenario) }
    }

    private func drive(waitsForOutside: Bool, mostAsleep: Int, _ scenario: @escaping Exploration.Scenario) -> Outcome {
        let (engine, simulation, name) = (engine, simulation, rootName)
        Simulation.$running.withValue(simulation) {
            _ = simulation.spawn(name) {
                do { try await scenario(simulation) } catch {
                    engine.fail(error, by: name, "throws \(PlainText.beginning(of: error))")
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
        let left = end()
        outcome.parkedThreads = left.stoppedThreads.count + left.sleepers.count
        let isEndless = left.stoppedThreads.contains { $0.wait == nil }
        outcome.hasLeftThreads = !left.lostThreads.isEmpty || isEndless || !Self.park(outcome.parkedThreads)
        outcome.excess = Self.leave(left, most: mostAsleep)
        return outcome
    }

    /// Ends what the scenario left behind: cancels its spawned tasks, ends the waits that can throw, and runs all runnable work.
    ///
    /// Other sleepers stay asleep, and after an escape no task is cancelled.
    ///
    /// - Returns: What is left, with the threads that wait for what can't come any more and stay asleep.
    private func end() -> Engine.State {
        let cancellations = engine.state.withLock { state in
            state.recorder = nil
            state.endLimit = state.steps + max(engine.stepLimit, Self.endSteps)
            // Work outside goes on after an escape: a handler could meet it at any moment, and wait for it under the task's lock.
            return state.escape == nil ? state.tasks.spawned.compactMap(\.cancel) : []
        }
        engine.doors.step { engine.cancel(cancellations) }
        engine.run()
        // Release these outside the lock: a deinit is foreign code. A task that never ends keeps only the engine alive.
        return engine.state.withLock { state in
            let before = state
            state = Engine.State(endedAt: before.clock.now)
            // What it would use may be gone: a test's body exists only until its exploration ends.
            if before.tasks.spawned.first?.hasEnded == false { state.abandoned = before.tasks.root?.identity ?? 0 }
            return before
        }
    }

    /// How many threads may stay asleep in this process while explorations go on: each keeps its stack.
    private static let mostParked = 1_000
    private static let parked = Lock(0)

    /// - Returns: `false` if there are too many now.
    private static func park(_ count: Int) -> Bool {
        parked.withLock { parked in
            parked += count
            return count == 0 || parked <= mostParked
        }
    }

    /// How many tasks stay asleep in this process: each keeps about 5 KB, and what it holds.
    private static let asleep = Lock(0)

    /// - Returns: A problem if the tasks that are left asleep are too many now.
    private static func leave(_ left: Engine.State, most: Int) -> ExplorationProblem? {
        let timers = left.clock.timers.filter { $0.suspension.job != nil }
        let count = asleep.withLock { asleep in
            asleep += timers.count
            return asleep
        }
        guard count > most, let timer = timers.last else { return nil }
        return ExplorationProblem(.sleepers, tasks: [left.name(of: timer.suspension, timer.sleeper)], detail: "\(count)")
    }
}

/// A hash of the steps and choices, to distinguish executions.
struct Fingerprint: Sendable, Equatable {
    private var hash: UInt64 = 0xcbf2_9ce4_8422_2325

    var text: String { String(hash, radix: 36) }

    mutating func mix(_ value: Int) {
        hash = (hash ^ UInt64(bitPattern: Int64(value))) &* 0x100_0000_01b3
    }

    mutating func mix(_ text: String) {
        var text = text
        text.withUTF8 { bytes in unsafe bytes.forEach { mix(Int($0)) } }
    }
}
