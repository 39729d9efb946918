import AccessTokensTesting
import RaceGallery
import Testing

@testable import race_lab

/// Holds the table's sentences, which are fixed, to its numbers, which are measured.
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
        // Each waits for a load of its own: only the one whose load gets no answer is lost.
        #expect(row.answersLost == 1)
        #expect(row.answersTwice == (name == Design.unpredictable.name ? 10 : 0))
        #expect(!row.signOutHolds)
        #expect(row.waitingAtExpiry == 10)
    }

    @Test(arguments: [Design.enqueueing, .threadSafe].map(\.name))
    func `stages 2 and 3 load once, in order, but lose answers, forget sign-outs and wait`(_ name: String) async throws {
        let row = try await measure(try #require(Design.all.first { $0.name == name }))
        #expect([row.loads, row.tokensRevokedInUse, row.answersOutOfOrder, row.answersTwice] == [1, 0, 0, 0])
        #expect(row.answersLost == 20)
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
    }

    @Test func `the lab measures the same in every run`() async throws {
        for design in Design.all {
            let (once, again) = (try await measure(design), try await measure(design))
            #expect(once == again)
        }
    }

    @Test(arguments: [1, 10_000])
    func `the lab's table and sentences fit a terminal of 80 columns`(callers: Int) async throws {
        let progress = Log<String>()
        let report = try await SimulationReport(callers: callers) { progress.append($0) }.description
        #expect(report.tooLong == [])
        #expect(progress.entries.filter { $0.count >= 80 } == [])
        let lines = report.split(separator: "\n")
        for design in Design.all { #expect(lines.count { $0.hasPrefix(design.title + " ") } == 1) }
        for count in SimulationReport.counts { #expect(lines.count { $0.hasPrefix(count.name + " ") } == 2) }
    }
}
