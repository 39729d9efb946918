import Foundation
import Interleavings
import RaceGallery
import TestBudgets
import Testing

/// The articles' question, counted: callers ask at the same time, and every schedule is tried.
@Suite struct `The contrast` {
    struct Row: Sendable {
        let design: Design
        let callers: Int
        /// How many delays a schedule may have; `nil`: all schedules.
        var delays: Int?
        let schedules: Int
        let failures: Int

        init(_ design: Design, callers: Int, delays: Int? = nil, _ schedules: Int, failing failures: Int) {
            (self.design, self.callers, self.delays) = (design, callers, delays)
            (self.schedules, self.failures) = (schedules, failures)
        }
    }

    static let rows = [
        Row(.unpredictable, callers: 3, delays: 3, 684, failing: 669),
        Row(.threadSafe, callers: 2, 12, failing: 0),
        Row(.threadSafe, callers: 3, delays: 3, 39, failing: 0),
        Row(.threadSafe, callers: 4, delays: 3, 83, failing: 0),
        Row(.callbackShim, callers: 3, delays: 3, 92, failing: 0),
        Row(.callbackShim, callers: 4, delays: 3, 129, failing: 0),
        Row(.tokenService, callers: 3, delays: 3, 280, failing: 0),
        Row(.tokenService, callers: 4, delays: 3, 449, failing: 0),
    ]

    /// Each takes some seconds in a debug build.
    static let slowRows = [
        Row(.unpredictable, callers: 2, 924, failing: 910),
        Row(.enqueueing, callers: 3, delays: 3, 1_137, failing: 695),
        Row(.reentrant, callers: 3, delays: 3, 1_300, failing: 1_300),
        Row(.unpredictable, callers: 4, delays: 3, 1_806, failing: 1_802),
        Row(.enqueueing, callers: 4, delays: 3, 2_381, failing: 1_530),
        Row(.reentrant, callers: 2, 3_376, failing: 3_332),
        Row(.reentrant, callers: 4, delays: 3, 3_324, failing: 3_324),
    ]

    /// Each takes up to a few minutes in a debug build.
    static let longRows = [
        Row(.callbackShim, callers: 2, 2_402, failing: 0),
        Row(.enqueueing, callers: 2, 263_598, failing: 258_978), Row(.tokenService, callers: 2, 20_844, failing: 0),
    ]

    @Test(arguments: rows) func `a design fails in as many schedules as Docs/Contrast.md says`(_ row: Row) async throws {
        try await check(row)
    }

    @Test(.thorough, arguments: slowRows)
    func `a design with some thousand schedules fails in as many as Docs/Contrast.md says`(_ row: Row) async throws {
        try await check(row)
    }

    @Test(.enabled(if: ProcessInfo.processInfo.environment["EVERY_SCHEDULE"] != nil), arguments: longRows)
    func `a design with many schedules fails in as many as Docs/Contrast.md says`(_ row: Row) async throws {
        try await check(row)
    }

    private func check(_ row: Row) async throws {
        let summary = try await Trial.rush.explore(row.design, callers: row.callers, .exhaustive(delays: row.delays))
        #expect(summary.coverage.gaps.isEmpty)
        #if DEBUG
        #expect(summary.schedules == row.schedules)
        #expect(summary.failures == row.failures)
        #else
        // The optimizer may remove suspensions, and thus schedules.
        #expect((summary.failures > 0) == (row.failures > 0))
        #endif
    }

    private func page() throws -> String {
        let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }
        return try String(contentsOf: root.appending(path: "Docs/Contrast.md"), encoding: .utf8)
    }

    @Test func `Docs/Contrast.md has a row for each design and number of callers`() throws {
        let page = try page()
        for row in Self.rows + Self.slowRows + Self.longRows {
            let bound = row.delays.map { "at most \($0) delays" } ?? "all"
            let line = "| \(row.design.name) | \(row.callers) | \(bound) | \(row.schedules) | \(row.failures) |"
            #expect(page.contains(line), "\(line)")
        }
        let counts = [Self.rows, Self.slowRows, Self.longRows].map(\.count)
        let sentence =
            "\(counts[0]) of the \(counts.reduce(0, +)) rows in each run of the tests, \(counts[1]) more with `THOROUGH=1` in the "
            + "environment, as in CI, and with `EVERY_SCHEDULE=1` the \(counts[2]) that"
        #expect(page.replacing("\n", with: " ").contains(sentence), "\(sentence)")
    }

    @Test(
        arguments: [
            (Design.unpredictable, Trial.all), (.enqueueing, Trial.all), (.threadSafe, [.signOut, .release, .silence]),
            (.reentrant, [.rush, .signOut, .silence]), (.callbackShim, []), (.tokenService, []),
        ])
    func `each design fails in the trials that concern its flaws, and in no other`(_ design: Design, _ trials: [Trial])
        async throws
    {
        var failing: [String] = []
        for trial in Trial.all {
            let summary = try await trial.explore(
                design, callers: .everyday(2, thorough: 3), .exhaustive(delays: .everyday(1, thorough: 2)))
            #expect(summary.coverage.gaps.isEmpty)
            if summary.failures > 0 { failing.append(trial.name) }
        }
        #expect(failing == trials.map(\.name))
    }

    @Test(
        arguments: zip(
            [Design.unpredictable, .enqueueing, .threadSafe, .reentrant, .callbackShim, .tokenService], [50, 50, 50, 0, 50, 50]))
    func `each design answers as many callers that block a thread as Docs/Contrast.md says`(_ design: Design, answered: Int)
        throws
    {
        #expect(Trial.answeredIfBlocking(design, callers: 50) == answered)
        let line = "| \(design.name) | 50 | \(answered) |"
        #expect(try page().contains(line), "\(line)")
    }

    /// These happen between a load's beginning and its end.
    @Test(arguments: [(Design.threadSafe, true), (.reentrant, true), (.callbackShim, false), (.tokenService, false)])
    func `only the broken designs undo a sign-out during one caller's load`(_ design: Design, isUndone: Bool) async throws {
        let summary = try await Trial.signOut.explore(design, callers: 1, .exhaustive(delays: 3))
        #expect(summary.coverage.gaps.isEmpty)
        #expect((summary.failures > 0) == isUndone)
    }
}
