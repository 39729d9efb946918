import Testing

@testable import race_lab

@Suite struct `Summary of a real run` {
    @Test func `a summary counts callers, answers and failures, with their latencies`() {
        var tally = Tally(callers: 2)
        tally.answered(after: .milliseconds(20), isFirst: true)
        tally.answered(after: .nanoseconds(60), isFirst: false)
        tally.failed()
        let callers = RealSummary.Callers(tally)
        #expect(callers.row(named: "async") == ["async", "2", "1", "2", "1", "60 ns", "20 ms", "20 ms", "20 ms"])
        #expect(callers.latencyMicroseconds["max"] == 20_000)
        #expect(callers.latencyMicroseconds["p50"] == 0.06)
    }

    @Test func `a summary fits a terminal of 80 columns, however many answers there were`() {
        var tally = Tally(callers: 10_000)
        for _ in 1...10_000 { tally.answered(after: .microseconds(999), isFirst: true) }
        for _ in 1...90_000 { tally.answered(after: .seconds(90), isFirst: false) }
        let summary = RealSummary(
            elapsed: .milliseconds(86_399_999), watch: Watch(expiries: 1_000), asyncCallers: tally, callbackCallers: tally)
        #expect(summary.description.tooLong == [])
    }

    @Test func `a summary says so when no answer came at all`() {
        let noCalls = Tally(callers: 1)
        let summary = RealSummary(
            elapsed: .seconds(9), watch: Watch(expiries: 3), asyncCallers: noCalls, callbackCallers: noCalls)
        #expect(summary.error == "The authorization server did not answer within 9.0 s.")
        #expect(summary.description.contains("–"))
    }
}
