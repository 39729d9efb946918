import Interleavings
public import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Configures the explorations in a test or suite, and reports their failures as issues with a diagram.
///
/// ```swift
/// @Suite(.exploring(schedules: 10_000)) struct CacheTests {
///     @Test func `loads once`() async throws {
///         try await explore { simulation in … }
///     }
/// }
/// ```
///
/// - A failing exploration is one issue with the report as its comment and the diagram (SVG) as its attachment; run
///   `swift test --attachments-path DIRECTORY` to keep the file in a directory that exists.
/// - `#expect` and `#require` inside a scenario fail the schedule instead of the test, so that it is shrunk and reported. They do so
///   in each test of a program that links this module, even without the trait.
/// - The environment overrides the code: `INTERLEAVINGS_REPLAY` runs one schedule, as a report prints it, and
///   `INTERLEAVINGS_TIME` (`whenIdle` or `anytime`) sets the model of time; `INTERLEAVINGS_STOP` stops the replay before a step.
///   For generated operations, `INTERLEAVINGS_PROGRAM` is the program that the schedule belongs to.
///   If `--filter` selects no test that replays the schedule, the run fails. In a test that explores more than once, `2:0.2.1`
///   is a schedule of its second exploration, and the others run as in their code.
///   `INTERLEAVINGS_PAGE` names a directory: each failure writes a page there that walks through its schedule in a browser, beside
///   the nearest one that passes, and the report says where it is.
///   `INTERLEAVINGS_SCHEDULES` and `INTERLEAVINGS_SEED` set the number of schedules and the seed. The seed `random` makes a
///   fresh one, which the report names.
public struct ExplorationTrait: TestTrait, SuiteTrait, TestScoping {
    private let schedules: Int?
    private let seed: UInt64?
    private let variables: [String: String]

    /// Suites pass the trait on to their tests.
    public let isRecursive = true

    /// - Parameter variables: The environment.
    init(schedules: Int?, seed: UInt64?, variables: [String: String] = ProcessInfo.processInfo.environment) {
        self.schedules = schedules
        self.seed = seed
        self.variables = variables
        _ = ReplayWatch.hasBegun
    }

    /// Runs a test with the trait's settings and reports its failing exploration.
    @concurrent public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let settings = try ExplorationEnvironment(variables)
        // An inner suite or a test sets only what differs.
        var overrides = Overrides.current
        overrides.schedules = settings.schedules ?? schedules ?? overrides.schedules
        overrides.seed = settings.seed ?? seed ?? overrides.seed
        overrides.replay = settings.replay
        overrides.stop = settings.stop
        overrides.program = settings.program
        overrides.replayed = settings.replayed
        let explorations = ExplorationCount()
        overrides.explorations = explorations
        defer { if explorations.hasReplayed { ReplayWatch.note() } }
        let command = ReplayCommand(test).text
        overrides.command = command
        overrides.time = settings.time
        overrides.seeksNearestPass = settings.page != nil
        do {
            try await Overrides.$current.withValue(overrides) { try await function() }
        } catch let failure as ScheduleFailure {
            let page = settings.page.map { PageFile.write(FailurePage(failure, command: command), of: test, into: $0) }
            report(failure, of: test, command, page)
        }
    }

    private func report(_ failure: ScheduleFailure, of test: Test, _ command: String, _ page: String?) {
        Attachment.record(failure.svg, named: "schedule.svg", sourceLocation: test.sourceLocation)
        let place = (failure.underlying as? ExplorationProblem).map(\.place) ?? ""
        let required = place.isEmpty ? "" : "\nRequired at \(place)."
        let told = page.map { "\n\($0)" } ?? ""
        Issue.record("\(failure)\n\(failure.variables) \(command)\(required)\(told)", sourceLocation: test.sourceLocation)
    }
}

extension Trait where Self == ExplorationTrait {
    /// Configures the explorations in a test or suite; see ``ExplorationTrait``.
    ///
    /// - Parameters:
    ///   - schedules: How many schedules each exploration runs; `nil`: the number in its code.
    ///   - seed: The seed of random schedules; `nil`: the seed in its code.
    public static func exploring(schedules: Int? = nil, seed: UInt64? = nil) -> Self {
        ExplorationTrait(schedules: schedules, seed: seed)
    }
}
