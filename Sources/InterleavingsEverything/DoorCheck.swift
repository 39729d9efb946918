import Dispatch
import Interleavings
import RuntimeDoors
import TokenServiceConcurrency

/// Tries each door once, before the first schedule.
///
/// An error names the missing hook; nothing is explored with some of them missing.
enum DoorCheck {
    static let ofAll = Result { try check(.all) }
    static let ofAllAndQueues = Result { try check(.allAndQueues) }
    static let ofActors = Result { try check(.actors) }

    /// Throws an `ExplorationProblem` that names the first door that can't be opened.
    static func check(_ doors: Doors) throws {
        let drivesQueues = ProgramDoors(doors).lettingThreadsWait
        if let missing = ProgramDoors.missing ?? (drivesQueues ? ProgramDoors.missingForQueues : nil) {
            throw shut("this program lacks \(missing)")
        }
        let others = doors == .actors ? [] : drivesQueues ? trials + trialsOfQueues : trials
        for (sign, scenario) in trialsOfActors + others {
            do {
                try Driving.everything(through: ProgramDoors(doors)).attempt(scenario)
            } catch let failure as ScheduleFailure {
                let reason = (failure.underlying as? ExplorationProblem)?.code.rawValue ?? "\(failure.underlying)"
                throw shut("\(sign) (\(reason))")
            }
        }
        try checkReturns(doors)
        if doors != .actors { try checkWaysOut(doors) }
    }

    /// A task that returns to an actor inside a function of the runtime must be found in the job that resumes it.
    private static func checkReturns(_ doors: Doors) throws {
        let gaps = try Driving.everything(through: ProgramDoors(doors)).attempt { _ in await Probe().comeBack() }
        if gaps.contains(.defaultActor) { throw shut("a task returns to an actor unnoticed") }
    }

    /// Checks that a step that leaves the simulation is noticed.
    private static func checkWaysOut(_ doors: Doors) throws {
        // Get the real pool here: inside the simulation, this name refers to the simulation's pool.
        let pool = globalConcurrentExecutor
        let ways: [Trial] = [
            { _ in Task(executorPreference: pool) {} }, { _ in DispatchSource.makeUserDataAddSource().activate() },
        ]
        for leave in ways {
            do {
                try Driving.everything(through: ProgramDoors(doors)).attempt { simulation in
                    try await leave(simulation)
                    await Task.yield()
                }
            } catch let failure as ScheduleFailure {
                if (failure.underlying as? ExplorationProblem)?.code == .escape { continue }
            }
            throw shut("an escape isn't noticed")
        }
    }

    static func shut(_ detail: String) -> ExplorationProblem { ExplorationProblem(.shutDoor, detail: detail) }

    typealias Trial = @Sendable (Simulation) async throws -> Void

    /// The symptom of a missing hook for default actors.
    private static let trialsOfActors: [(sign: String, Trial)] = [
        ("a call of a default actor is not a step", { try await $0.require(Probe().isInLane, "it ran elsewhere") }),
        ("the runtime leaves an actor", { try await $0.require(Probe().staysInLane(), "it went elsewhere") }),
        ("an immediate task waits", { try await $0.require(Probe().beginsAtOnce(), "it began later") }),
    ]

    /// The symptoms of the other missing hooks: each trial needs only the hooks of those before it.
    private static let trials: [(sign: String, Trial)] = [
        ("a task isn't driven", { _ in await Task.detached { await Task.yield() }.value }),
        ("the default pool isn't driven", { _ in await Task(executorPreference: globalConcurrentExecutor) {}.value }),
        ("the main actor isn't driven", { try await $0.require(isMainInLane(), "it ran elsewhere") }),
        (
            "clocks show real time",
            { simulation in
                let start = (ContinuousClock.now, SuspendingClock.now)
                try await simulation.clock.sleep(until: simulation.clock.now.advanced(by: .seconds(5)))
                let (one, two) = (start.0.duration(to: .now), start.1.duration(to: .now))
                try simulation.require(one == .seconds(5) && two == .seconds(5), "five seconds were \(one) and \(two)")
            }
        ),
        (
            "a sleep isn't driven",
            { simulation in
                try await Task.sleep(for: .milliseconds(1))
                try await Probe().sleep()
                try await Task.sleep(for: .milliseconds(1), tolerance: .milliseconds(1))
                try simulation.require(simulation.clock.now.offset == .milliseconds(3), "it took \(simulation.clock.now)")
            }
        ),
    ]

    @MainActor private static func isMainInLane() -> Bool { isInLane(of: MainActor.shared) }

    private static func isInLane(of actor: some Actor) -> Bool {
        let (present, lane) = (doors_current_executor(), ActorExecutor.words(for: actor))
        return present.identity == lane.identity && present.implementation == lane.implementation
    }

    private actor Probe {
        private var hasBegun = false

        var isInLane: Bool { DoorCheck.isInLane(of: self) }

        /// Whether the runtime's own functions run on the actor's executor.
        func staysInLane() async -> Bool {
            await withCheckedContinuation { $0.resume(returning: isInLane) }
        }

        /// Waits in a function of the runtime, isolated to the actor, in release builds as well.
        func comeBack() async {
            await withTaskGroup { group in
                await withCheckedContinuation { waiting in group.addTask { waiting.resume() } }
            }
        }

        func beginsAtOnce() async -> Bool {
            #if os(Linux)
            let task = Task.immediate { hasBegun = true }
            let isImmediate = hasBegun
            await task.value
            return isImmediate
            #else
            return true
            #endif
        }

        func sleep() async throws { try await Task.sleep(for: .milliseconds(1)) }
    }
}
