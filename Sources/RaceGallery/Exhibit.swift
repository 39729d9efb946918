public import Interleavings

/// A bug that shipped somewhere, made small: a scenario that shows it, and the same scenario on `TokenService`.
public struct Exhibit: Sendable {
    /// What is run under each schedule.
    public typealias Scenario = @Sendable (_ simulation: Simulation) async throws -> Void

    /// Its number in the museum, from 1.
    public let number: Int
    /// What it teaches, as a sentence without its full stop.
    public let lesson: String
    /// Where it shipped.
    public let source: String
    /// How its schedules are chosen; it is found within them.
    public let strategy: Strategy
    /// When its clock moves.
    public let time: TimeModel
    /// Where its tasks may be switched.
    public let granularity: Granularity
    /// Fails under some schedule; `nil`: what the bug needs cannot be made under the explorer, and a test says so.
    public let broken: Scenario?
    /// The same on `TokenService` or its shim: fails under none.
    public let mended: Scenario

    init(
        _ number: Int, _ lesson: String, source: String, strategy: Strategy = .mixed(), time: TimeModel = .whenIdle,
        granularity: Granularity = .jobs, broken: Scenario?, mended: @escaping Scenario
    ) {
        self.number = number
        self.lesson = lesson
        self.source = source
        self.strategy = strategy
        self.time = time
        self.granularity = granularity
        self.broken = broken
        self.mended = mended
    }

    /// All of them, by number.
    public static let all: [Exhibit] = firstHalf + secondHalf
}
