import TokenServiceConcurrency

/// A test run's settings, which override those in an exploration's code.
package struct Overrides: Sendable {
    /// How many schedules run; exhaustive explorations ignore it.
    package var schedules: Int?
    /// The seed of random schedules.
    package var seed: UInt64?
    /// The one schedule to run.
    package var replay: Schedule?
    /// The step before which the replay stops.
    package var stop: Int?
    /// The one program of operations to run.
    package var program: Program?
    /// When the clock moves.
    package var time: TimeModel?
    /// Which of the test's explorations the replay is for, from 1; the others run as in their code.
    package var replayed = 1
    /// Counts the explorations of the current test; `nil`: they aren't counted, and all of them replay.
    package var explorations: ExplorationCount?
    /// The number of the test's exploration that the current one is part of; `nil`: it isn't part of another.
    var number: Int?
    /// The command that runs the current test again, for the report of a crash; `nil`: it isn't known.
    package var command: String?
    /// Names the package, whose later runs report a process that ended during a schedule.
    var package = BlackBoxFile.package
    /// How the whole test becomes the scenario; `nil`: the scenario is a part of it.
    package var test: TestForm?
    /// Tells the exploration apart after a crash; `nil`: the place of its call does.
    package var place: String?
    /// Whether each failure is compared with a schedule that passes, for its ``FailurePage``.
    package var seeksNearestPass = false
    /// Whether an execution in which nothing can run waits in real time for an outside event.
    var waitsForOutside = true
    /// How many tasks the schedules of this process may leave asleep: a little over 1 GB.
    package var mostAsleep = 250_000
    /// Whether ``Driving/preferred`` leaves this program's doors shut, as if it had none.
    package var isUnaided = false

    /// The current task's overrides.
    @TaskLocal package static var current = Overrides()

    package init(schedules: Int? = nil, seed: UInt64? = nil, replay: Schedule? = nil, time: TimeModel? = nil) {
        self.time = time
        self.schedules = schedules
        self.seed = seed
        self.replay = replay
    }

    /// Runs a body whose explorations in the preferred mode run as in a program without doors.
    package static func unaided<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        var overrides = current
        overrides.isUnaided = true
        return try await $current.withValue(overrides) { try await body() }
    }

    /// Returns the overrides of the exploration that begins, and its number in the test.
    func beginExploration() -> (overrides: Overrides, number: Int) {
        if let number { return (self, number) }
        guard let explorations else { return (self, 1) }
        let number = explorations.begin(replaying: replay == nil ? nil : replayed)
        guard replay != nil, number != replayed else { return (self, number) }
        var others = self
        (others.replay, others.stop, others.time, others.program) = (nil, nil, nil, nil)
        return (others, number)
    }

    func applied(to strategy: Strategy) -> Strategy {
        if let replay { return Strategy(kind: .replay(replay, stop: stop)) }
        return switch strategy.kind {
        case .mixed(let count, let first): .mixed(schedules: schedules ?? count, seed: seed ?? first)
        case .random(let count, let first): .random(schedules: schedules ?? count, seed: seed ?? first)
        case .pct(let count, let depth, let first): .pct(schedules: schedules ?? count, depth: depth, seed: seed ?? first)
        case .exhaustive, .replay: strategy
        }
    }
}

/// How a whole test becomes a scenario, as the code that does so begins.
package enum TestForm: String, Sendable {
    case trait = "@Test(.explored("
    case function = "try await explored("
    case together = "try await exploreTogether("
}

/// Counts the explorations of one test, which has several if it calls `explore` more than once.
package final class ExplorationCount: Sendable {
    private let state = Lock((begun: 0, hasReplayed: false))

    package init() {}

    /// Whether one of them replayed the schedule of the run.
    package var hasReplayed: Bool { state.withLock { $0.hasReplayed } }

    fileprivate func begin(replaying number: Int?) -> Int {
        state.withLock { state in
            state.begun += 1
            if state.begun == number { state.hasReplayed = true }
            return state.begun
        }
    }
}
