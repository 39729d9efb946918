import Foundation
import Testing

@testable import race_lab

@Suite struct `Summary of a real run` {
    @Test func `a summary counts callers, answers and failures, with the longest wait after a first token`() throws {
        var tally = Tally()
        tally.answered(after: .milliseconds(20), isFirst: true)
        tally.answered(after: .nanoseconds(60), isFirst: false)
        tally.failures += 1
        let summary = RealSummary(elapsed: .seconds(9), watch: Watch(expiries: 1), callers: 2, tally)
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
        let summary = RealSummary(elapsed: .milliseconds(86_399_999), watch: Watch(expiries: 1_000), callers: 10_000, tally)
        #expect(summary.description.tooLong == [])
    }

    @Test func `a summary says so when no answer came at all`() {
        let summary = RealSummary(elapsed: .seconds(9), watch: Watch(expiries: 3), callers: 1, Tally())
        #expect(summary.error == "The authorization server did not answer within 9.0 s.")
        #expect(summary.description.contains("–"))
    }
}
