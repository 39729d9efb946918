import TokenServiceConcurrency

/// Runs one schedule after another.
struct Exploration: Sendable {
    var settings: Settings
    let countsFailures: Bool
    let scenario: Scenario
    private var surroundings: Engine.Surroundings
    /// The current schedule, running for the first time or again.
    private(set) var present = (number: 0, strategy: "", seed: UInt64?.none)
    var summary: ExplorationSummary
    var distinct = DistinctCount()
    /// How many schedules will run, if known.
    private(set) var planned: Int?
    /// Whether an execution waited in vain for a resumption from outside; if so, later ones don't wait.
    var hasWaited = false
    /// Whether executions wait for outside events at all.
    let waitsForOutside = Overrides.current.waitsForOutside
    private let mostAsleep = Overrides.current.mostAsleep

    typealias Scenario = @Sendable (Simulation) async throws -> Void

    init(
        settings: Settings, countsFailures: Bool, blackBox: BlackBox? = nil, watchdog: Watchdog? = nil,
        scenario: @escaping Scenario
    ) {
        self.settings = settings
        blackBox?.set(self.settings)
        self.countsFailures = countsFailures
        self.scenario = scenario
        summary = ExplorationSummary(granularity: settings.granularity)
        surroundings = Engine.Surroundings(blackBox: blackBox, watchdog: watchdog)
        if settings.usesThreads { surroundings.threads = ControlledThreads(stepSeconds: settings.stepSeconds) }
    }

    mutating func run(_ strategy: Strategy) throws -> ExplorationSummary {
        if let most = strategy.mostSchedules, most < 1 {
            throw ExplorationProblem(.nothingToExplore, detail: "the strategy has \(most) schedules")
        }
        switch strategy.kind {
        case .mixed(let schedules, let seed):
            try sample(schedules, seed, "mixed") { number, random, length in
                switch number {
                case 0: .usual
                case _ where number % 2 == 1: .random(random)
                default: .priorities(Priorities(random: random, depth: 2 + number / 2 % 3, length: length))
                }
            }
        case .random(let schedules, let seed):
            try sample(schedules, seed, "random") { _, random, _ in .random(random) }
        case .pct(let schedules, let depth, let seed):
            try sample(schedules, seed, "PCT(\(depth))") { number, random, length in
                number == 0 ? .usual : .priorities(Priorities(random: random, depth: depth, length: length))
            }
        case .exhaustive(let preemptions, let delays, let limit):
            try search(DepthFirst(preemptions: preemptions, delays: delays), limit: limit)
        case .replay(let schedule, let stop):
            try replay(Replay(choices: schedule.choices, stop: stop))
        }
        // A test with one order has been run, and that is all there is to it.
        if settings.test == nil, strategy.mostSchedules != nil, summary.mostChoices == 0, summary.steps == summary.schedules,
            summary.failures == 0
        {
            throw ExplorationProblem(
                .nothingToExplore, detail: "the scenario has one step and one order; start what it tests with simulation.spawn")
        }
        summary.coverage.add(summary.omissions)
        return summary
    }

    /// Draws a schedule during which an earlier process ended, up to the step that ended it; `nil`: it is another's, or runs differently
    /// now.
    mutating func picture(of left: BlackBox.Left, at place: String) -> String? {
        guard left.origin == BlackBox.origin(place, settings) else { return nil }
        begin("replay", seed: nil)
        summary.schedules = 1
        let outcome = execute(.replay(Replay(choices: left.choices, stop: left.step)), records: true)
        guard let problem = outcome.error as? ExplorationProblem, problem.code == .stopped else { return nil }
        return "\nInterleavings: the schedule in which an earlier run ended, up to that step.\n\(failure(problem, outcome))\n"
    }

    private mutating func replay(_ replay: Replay) throws {
        summary.coverage.gaps.append(.sample)
        begin("replay", seed: nil)
        let outcome = execute(.replay(replay), records: true)
        try note(outcome, shrinks: false)
        guard outcome.error == nil, case .replay(let end) = outcome.chooser else { return }
        if let problem = end.problem(after: outcome.steps) { throw failure(problem, outcome) }
    }

    private mutating func begin(_ strategy: String, seed: UInt64?) {
        present = (summary.schedules + 1, strategy, seed)
    }

    /// Returns what the watchdog reports for an execution; inside another scenario's step, it reports that scenario's schedule.
    private func moment(_ engine: Engine) -> Watchdog.Moment? {
        if let outer = surroundings.watchdog?.present { return Watchdog.Moment(engine: engine, describe: outer.describe) }
        let (settings, present, planned) = (settings, present, planned)
        return Watchdog.Moment(engine: engine) { error in
            let error = (error as? ExplorationProblem)?.advising(on: settings) ?? error
            let choices = Schedule(choices: engine.state.withLock { $0.choices.made }).choices
            return ScheduleFailure(
                underlying: error, choices: choices, number: present.number, planned: planned, strategy: present.strategy,
                seed: present.seed, trace: Trace(), settings: settings)
        }
    }

    /// Runs random schedules, each determined by the seed and its number alone.
    ///
    /// - Parameter source: Returns each schedule's chooser. Its last parameter is the largest number of decisions so far.
    private mutating func sample(
        _ schedules: Int, _ seed: UInt64, _ name: String,
        _ source: (_ number: Int, _ random: SplitMix64, _ length: Int) -> Chooser
    ) throws {
        planned = schedules
        summary.coverage.gaps.append(.sample)
        // Hashed twice, so that neighbouring seeds and neighbouring numbers have nothing in common.
        var hash = SplitMix64(seed: seed)
        var seeds = SplitMix64(seed: hash.next())
        var length = 1
        for number in 0..<max(schedules, 0) {
            let chooser = source(number, SplitMix64(seed: seeds.next()), length)
            begin(name, seed: seed)
            let outcome = execute(chooser)
            length = max(length, outcome.chooser.decisions)
            try note(outcome)
            // All others would be the same.
            if settings.test != nil, outcome.choices.isEmpty { break }
        }
    }

    mutating func use(_ time: TimeModel) {
        guard time != settings.time else { return }
        settings.time = time
        surroundings.blackBox?.set(settings)
    }

    private mutating func search(_ first: DepthFirst, limit: Int) throws {
        var search = first
        repeat {
            guard summary.schedules < limit else {
                summary.coverage.gaps.append(.scheduleLimit)
                break
            }
            begin("exhaustive", seed: nil)
            let outcome = execute(.depthFirst(search))
            try note(outcome)
            // Each differs from all earlier ones.
            summary.distinctSchedules = summary.schedules
            guard case .depthFirst(let after) = outcome.chooser else { break }
            if let divergence = after.divergence, outcome.isRepeatable {
                throw failure(difference(after: outcome, divergence), outcome)
            }
            search = after
        } while search.advance()
        summary.coverage.bounds += search.bounds
    }

    /// - Parameter isReported: Whether its failure will be reported, so that an escape must be ruled out again.
    mutating func execute(_ chooser: Chooser, records: Bool = false, isReported: Bool = false) -> Execution.Outcome {
        let execution = Execution(chooser, settings, surroundings, records: records)
        surroundings.blackBox?.begin(present.number, seed: present.seed)
        let outer = surroundings.watchdog?.watch(moment(execution.engine))
        defer { _ = surroundings.watchdog?.watch(outer) }
        let outcome = execution.run(
            waitsForOutside: waitsForOutside && (!hasWaited || isReported), mostAsleep: mostAsleep, scenario)
        hasWaited = hasWaited || outcome.hasWaited
        return outcome
    }
}
