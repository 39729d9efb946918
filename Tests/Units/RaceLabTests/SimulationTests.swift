import AccessTokensTesting
import RaceGallery
import TestBudgets
import Testing

@testable import race_lab

/// Checks the table's fixed sentences against its measured numbers.
@Suite struct `The simulation` {
    private static let callers = 10

    private func measure(_ design: Design) async throws -> Findings {
        try await Findings(of: design, callers: Self.callers)
    }

    @Test(arguments: [Design.unpredictable, .reentrant].map(\.name))
    func `stage 1 and the naive actor load once for each caller and revoke each other's tokens`(_ name: String) async throws {
        let row = try await measure(try #require(Design.all.first { $0.name == name }))
        #expect(row.loads == 10)
        #expect(row.tokensRevokedInUse == 9)
        #expect(row.answersOutOfOrder > 0)
        // Each waits for its own load: only the caller whose load gets no answer is lost.
        #expect(row.answersLost == 1)
        #expect(row.answersTwice == (name == Design.unpredictable.name ? 10 : 0))
        // An actor's caller waits in a task, which needs a thread of the blocked pool.
        #expect(row.answeredIfBlocking == (name == Design.unpredictable.name ? 10 : 0))
        #expect(!row.signOutHolds)
        #expect(row.waitingAtExpiry == 10)
    }

    @Test(arguments: [Design.enqueueing, .threadSafe].map(\.name))
    func `stages 2 and 3 load once, in order, but lose answers, undo sign-outs and block callers`(_ name: String) async throws {
        let row = try await measure(try #require(Design.all.first { $0.name == name }))
        #expect([row.loads, row.tokensRevokedInUse, row.answersOutOfOrder, row.answersTwice] == [1, 0, 0, 0])
        #expect(row.answersLost == 20)
        #expect(row.answeredIfBlocking == 10)
        #expect(!row.signOutHolds)
        #expect(row.waitingAtExpiry == 10)
    }

    @Test(arguments: [Design.callbackShim, .tokenService].map(\.name), [1, 10, 250])
    func `AccessTokenService and TokenService load once, answer each caller once, and keep a sign-out`(
        _ name: String, callers: Int
    ) async throws {
        let row = try await Findings(of: try #require(Design.all.first { $0.name == name }), callers: callers)
        #expect(row.loads == 1)
        #expect([row.tokensRevokedInUse, row.answersLost, row.answersTwice] == [0, 0, 0])
        #expect([row.answersOutOfOrder, row.waitingAtExpiry] == [0, 0])
        #expect(row.signOutHolds)
        #expect(row.answeredIfBlocking == callers)
    }

    @Test func `the lab measures the same in every run`() async throws {
        for design in Design.all {
            let (once, again) = (try await measure(design), try await measure(design))
            #expect(once == again)
        }
    }

    @Test(arguments: isThorough ? [1, 100, 10_000] : [100])
    func `the lab's table and sentences fit a terminal of 80 columns`(callers: Int) async throws {
        let run = try await callers == 100 ? LabRun.usual.value : LabRun(callers: callers)
        #expect(run.text.tooLong == [])
        #expect(run.progress.filter { $0.count >= 80 } == [])
        let lines = run.text.split(separator: "\n")
        for design in Design.all { #expect(lines.count { $0.hasPrefix(design.title + " ") } == 1) }
        for count in SimulationReport.counts { #expect(lines.count { $0.hasPrefix(count.name + " ") } == 2) }
    }

    @Test(arguments: [30, 60]) func `a terminal narrower than the table gets a list with the same numbers`(columns: Int)
        async throws
    {
        let report = try await LabRun.usual.value.report
        let lines = Console.$columns.withValue(columns) { report.table.lines }
        #expect(lines.filter { $0.count > columns } == [])
        #expect(lines.count == SimulationReport.counts.count * (Design.all.count + 1))
        let first = try #require(report.designs.last)
        #expect(lines[0] == "loads" && lines[1].contains(/^  Token Service +\d+$/))
        #expect(lines[1].hasSuffix(" \(first.loads)"))
    }

    @Test func `the lab says at once what it compares, then names each design as soon as it is done`() async throws {
        let events = try await LabRun.usual.value.events
        #expect(
            events.first
                == .text(
                    """
                    100 callers need an access token at once. This is how six designs of a token
                    service handle it, on a simulated server: first in the usual order, then with 3
                    callers in hundreds of other orders.

                    """))
        for (design, next) in zip(Design.all, Design.all.dropFirst()) {
            let line = try #require(
                events.firstIndex { if case .text(let text) = $0 { text.hasPrefix(design.title + " ") } else { false } })
            #expect(events[line - 1] == .progress("\(design.name): \(Trial.all.last?.name ?? ""), in every order"))
            #expect(events[line + 1] == .progress("\(next.name): \(Trial.all[0].name)"))
        }
    }

    @Test func `the table, its notes and the lesson are the last 24 lines, so that a terminal shows them at the end`()
        async throws
    {
        let lines = try await LabRun.usual.value.text.split(separator: "\n", omittingEmptySubsequences: false).suffix(24)
        #expect(lines.contains { $0.hasPrefix("loads ") && $0.hasSuffix(" 1") })
        #expect(lines.last == "Share the load, not only the token.")
    }
}
