import AccessTokensTesting
import Foundation
import Testing

@testable import race_lab

@Suite struct `Summary of a real run` {
    private func figures(_ tally: Tally, _ design: String = "AccessTokenService") -> RealFigures {
        RealFigures(design, MeteredLoader(ScriptedLoader()).count, tally)
    }

    @Test func `the waits of 50 and 99 of 100 calls are reported within 3 %, and the longest exactly`() throws {
        var tally = Tally()
        #expect(tally.wait(of: 0.5) == nil)
        tally.answered(after: .seconds(90), isFirst: true)
        #expect(tally.wait(of: 0.5) == nil)
        for number in (1...1_000).shuffled() { tally.answered(after: .microseconds(number), isFirst: false) }
        for (part, microseconds) in [(0.001, 1.0), (0.5, 500), (0.99, 990), (1, 1_000)] {
            let wait = try #require(tally.wait(of: part)) / .microseconds(1)
            #expect(microseconds * 0.97 <= wait && wait <= microseconds, "\(wait)")
        }
        #expect(tally.longestWait == .microseconds(1_000))
    }

    @Test func `the comparison has a row for each design, also where no caller waited for a second token`() {
        var summary = RealSummary(elapsed: .seconds(9), watch: Watch(expiries: 1), callers: 2, figures(Tally(), "TokenService"))
        var tally = Tally()
        tally.answered(after: .milliseconds(20), isFirst: true)
        tally.answered(after: .milliseconds(20), isFirst: false)
        tally.failures += 1
        summary.designs.append(figures(tally, "naive actor"))
        let rows = summary.comparison.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        #expect(rows.contains("TokenService 0 0 0 – – – 0"), "\(rows)")
        #expect(rows.contains("naive actor 0 0 0 20 ms 20 ms 20 ms 1"), "\(rows)")
    }

    @Test func `a summary counts callers, answers and failures, with the longest wait after a first token`() throws {
        var tally = Tally()
        tally.answered(after: .milliseconds(20), isFirst: true)
        tally.answered(after: .nanoseconds(60), isFirst: false)
        tally.failures += 1
        let summary = RealSummary(elapsed: .seconds(9), watch: Watch(expiries: 1), callers: 2, figures(tally))
        #expect(
            summary.description.replacing("\n", with: " ")
                == "1 of 2 callers served with 0 loads (0 failed) in 9.0 s; no token was replaced. Callers got 2 answers and "
                + "1 error. After its first token no caller waited longer than 60 ns for the next.")
        let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(summary)) as? [String: Any]
        #expect(json?["longestWaitMicroseconds"] as? Double == 0.06 && json?["served"] as? Int == 1)
    }

    @Test func `a summary fits a terminal of 80 columns, however many answers there were`() {
        var tally = Tally()
        for _ in 1...10_000 { tally.answered(after: .microseconds(999), isFirst: true) }
        for _ in 1...90_000 { tally.answered(after: .seconds(90), isFirst: false) }
        let summary = RealSummary(
            elapsed: .milliseconds(86_399_999), watch: Watch(expiries: 1_000), callers: 10_000, figures(tally))
        #expect(summary.description.tooLong == [])
        #expect(summary.comparison.tooLong == [])
    }

    @Test func `a summary without any answer says so`() {
        let summary = RealSummary(elapsed: .seconds(9), watch: Watch(expiries: 3), callers: 1, figures(Tally()))
        #expect(summary.error == "The authorization server did not answer within 9.0 s.")
        #expect(summary.description.contains("–"))
    }
}
