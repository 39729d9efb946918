/// What a test run wants of the explorations in it, whatever their code says.
package struct Overrides: Sendable {
    /// How many schedules; those of exhaustive explorations are not counted so.
    package var schedules: Int?
    /// Where random schedules begin.
    package var seed: UInt64?
    /// The one schedule to run.
    package var replay: Schedule?

    /// Those that apply here.
    @TaskLocal package static var current = Overrides()

    package init(schedules: Int? = nil, seed: UInt64? = nil, replay: Schedule? = nil) {
        self.schedules = schedules
        self.seed = seed
        self.replay = replay
    }

    func applied(to strategy: Strategy) -> Strategy {
        if let replay { return .replay(replay) }
        return switch strategy.kind {
        case .mixed(let count, let first): .mixed(schedules: schedules ?? count, seed: seed ?? first)
        case .random(let count, let first): .random(schedules: schedules ?? count, seed: seed ?? first)
        case .pct(let count, let depth, let first): .pct(schedules: schedules ?? count, depth: depth, seed: seed ?? first)
        case .exhaustive, .replay: strategy
        }
    }
}
