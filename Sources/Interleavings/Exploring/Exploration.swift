import TokenServiceConcurrency

/// Runs schedule after schedule.
struct Exploration: Sendable {
    let settings: Settings
    let countsFailures: Bool
    let scenario: Scenario
    private let threads: ControlledThreads?
    var summary = ExplorationSummary()
    /// How many schedules will run, if known.
    private(set) var planned: Int?
    /// Whether an execution waited in vain for a resumption from outside; later ones then do not wait.
    private var hasWaited = false

    typealias Scenario = @Sendable (Simulation) async throws -> Void

    init(settings: Settings, countsFailures: Bool, scenario: @escaping Scenario) {
        self.settings = settings
        self.countsFailures = countsFailures
        self.scenario = scenario
        threads = settings.granularity == .accesses ? ControlledThreads(stepSeconds: settings.stepSeconds) : nil
    }

    mutating func run(_ strategy: Strategy) throws -> ExplorationSummary {
        switch strategy.kind {
        case .mixed(let schedules, let seed):
            try sample(schedules, seed, "mixed") { number, random, length in
                switch number {
                case 0: .replay(Replay(choices: []))
                case _ where number % 2 == 1: .random(random)
                default: .priorities(Priorities(random: random, depth: 2 + number / 2 % 3, length: length))
                }
            }
        case .random(let schedules, let seed):
            try sample(schedules, seed, "random") { _, random, _ in .random(random) }
        case .pct(let schedules, let depth, let seed):
            try sample(schedules, seed, "PCT(\(depth))") { _, random, length in
                .priorities(Priorities(random: random, depth: depth, length: length))
            }
        case .exhaustive(let preemptions, let delays, let limit):
            try search(DepthFirst(preemptions: preemptions, delays: delays), limit: limit)
        case .replay(let schedule):
            let outcome = execute(.replay(Replay(choices: schedule.choices)), records: true)
            try note(outcome, strategy: "replay", seed: nil)
            if outcome.error == nil, case .replay(let replay) = outcome.chooser, let problem = replay.problem {
                throw failure(problem, outcome, strategy: "replay", seed: nil)
            }
        }
        return summary
    }

    private mutating func sample(
        _ schedules: Int, _ seed: UInt64, _ name: String,
        _ chooser: (_ number: Int, _ random: SplitMix64, _ length: Int) -> Chooser
    ) throws {
        planned = schedules
        for number in 0..<max(schedules, 0) {
            let own = seed &+ UInt64(number)
            // Neighbouring seeds must not give neighbouring numbers.
            let random = SplitMix64(seed: own &* 0x2545_f491_4f6c_dd1d)
            let outcome = execute(chooser(number, random, max(summary.mostChoices, 8)))
            try note(outcome, strategy: name, seed: own)
        }
    }

    private mutating func search(_ first: DepthFirst, limit: Int) throws {
        var search = first
        repeat {
            guard summary.schedules < limit else { return }
            let outcome = execute(.depthFirst(search))
            try note(outcome, strategy: "exhaustive", seed: nil)
            guard case .depthFirst(let after) = outcome.chooser else { return }
            if after.hasDiverged, outcome.isRepeatable {
                throw failure(difference(after: outcome), outcome, strategy: "exhaustive", seed: nil)
            }
            search = after
        } while search.advance()
        summary.isComplete = true
    }

    mutating func execute(_ chooser: Chooser, records: Bool = false) -> Execution.Outcome {
        let execution = Execution(chooser, settings, threads: threads, records: records)
        let outcome = execution.run(waitsForOutside: !hasWaited, scenario)
        hasWaited = hasWaited || outcome.hasWaited
        return outcome
    }
}
