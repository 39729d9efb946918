import AccessTokens
import AccessTokensSharing
import Foundation
import Testing

@testable import race_lab

@Suite struct `What race-lab sees of several processes` {
    /// Processes 1 and 2; process 1 loads token 2 after a second, and process 2 presents the same refresh token later.
    private func watch(_ meanwhile: [(Int, FleetWatch.Event)]) -> FleetWatch {
        var watch = FleetWatch()
        _ = watch.note(.started(1), at: .zero)
        _ = watch.note(.started(2), at: .zero)
        _ = watch.note(.exchanged(token: 1, 1, .issued(2)), at: .seconds(1))
        for (second, event) in meanwhile { _ = watch.note(event, at: .seconds(second)) }
        _ = watch.note(.exchanged(token: 1, 2, .reused(first: 1)), at: .seconds(9))
        return watch
    }

    @Test func `a process that gets its own token loads it, and another adopts it`() {
        var watch = FleetWatch()
        _ = watch.note(.started(1), at: .zero)
        _ = watch.note(.started(2), at: .zero)
        #expect(watch.note(.exchanged(token: 1, 1, .issued(2)), at: .zero) == "1 loads token 2")
        #expect(watch.note(.said(1, .token(2)), at: .zero) == "1 has saved token 2")
        #expect(watch.note(.said(2, .token(2)), at: .zero) == "2 adopts token 2")
        #expect(watch.members.map(\.loads) == [1, 0])
        #expect(watch.members.map(\.adoptions) == [0, 1])
        #expect(watch.rotations == 1 && watch.losses.isEmpty)
    }

    @Test func `a session is lost for a reason if its holder was killed, silent for the doubt or without an answer`() {
        let alive = (1...9).map { ($0, FleetWatch.Event.said(1, .alive)) }
        #expect(watch([(2, .ended(1, signal: true))]).losses.first?.reason?.contains("was killed") == true)
        #expect(watch([]).losses.first?.reason?.contains("was paused") == true)
        #expect(watch(alive + [(9, .said(1, .answerLost))]).losses.first?.reason?.contains("no answer") == true)
        #expect(watch(alive).losses.first?.reason == nil)
    }

    @Test func `a holder that had saved its token explains no lost session`() {
        let watch = watch([(2, .said(1, .token(2))), (3, .ended(1, signal: true))])
        #expect(watch.losses.map(\.reason) == [nil])
        let summary = FleetSummary(watch, processes: 2, expiries: 1, elapsed: .seconds(9))
        #expect(summary.error == "1 session lost without a reason")
    }

    @Test func `the summary counts, and a run with too few rotations has failed`() throws {
        let watch = watch([(2, .ended(1, signal: true))])
        let summary = FleetSummary(watch, processes: 2, expiries: 1, elapsed: .seconds(9))
        #expect(summary.error == nil)
        #expect(
            summary.description.replacing("\n", with: " ").contains(
                "1 rotation by 2 processes in 9.0 s, 1 kill; 1 session lost, 0 of them"))
        let short = FleetSummary(watch, processes: 2, expiries: 5, elapsed: .seconds(9))
        #expect(short.error == "the token was replaced 1 time within 9.0 s, not 5: give more --seconds")
        let json = try JSONSerialization.jsonObject(with: try JSONEncoder().encode(summary)) as? [String: Any]
        #expect(json?["sessionsLost"] as? Int == 1 && json?["unexplained"] as? Int == 0)
    }

    @Test func `the server ends a session when a refresh token comes twice, and forgives what is older than the session`() {
        var ledger = FleetLedger()
        #expect(ledger.present(1, by: 1) == .refused)
        let first = ledger.signIn()
        #expect(ledger.present(first, by: 1) == .issued(2))
        #expect(ledger.present(first, by: 2) == .reused(first: 1))
        #expect(ledger.present(2, by: 1) == .refused)
        #expect(ledger.signIn() == 3)
        #expect(ledger.present(2, by: 1) == .refused)
        #expect(ledger.present(3, by: 1) == .issued(4))
        #expect(ledger.present(nil, by: 1) == .refused)
        #expect(ledger.rotations == 2)
    }

    @Test func `the server reads the process from the path and the token from the form`() {
        let request = "POST /token/77 HTTP/1.1\r\n\r\ngrant_type=refresh_token&refresh_token=race-lab-refresh-5&client_id=a"
        let parts = FleetServer.parts(of: request)
        #expect(parts.process == 77 && parts.token == 5)
    }

    @Test(arguments: [FleetWorker.Line.alive, .token(7), .answerLost, .failed("no such file")])
    func `what a process says is understood`(_ line: FleetWorker.Line) {
        #expect(FleetWorker.Line(line.text[...]) == line)
    }

    @Test(arguments: [[], ["http://127.0.0.1:1"], ["http://127.0.0.1:1", "--store", "grant"]])
    func `a process of the fleet with other arguments than its parent's ends with an error`(_ arguments: [String]) {
        #expect(throws: UsageError.self) { try FleetWorker([FleetWorker.flag] + arguments) }
    }

    @Test func `a record that race-lab has not written is left alone`() {
        let foreign = SharedRecord(Data(#"{"token":"real"}"#.utf8), revision: .init("1"))
        #expect(throws: UsageError.self) { try FleetGrant.requireOwn(foreign) }
        #expect(throws: Never.self) { try FleetGrant.requireOwn(nil) }
    }
}
