import Testing

@testable import race_lab

@Suite struct `Latency histogram` {
    @Test func `a histogram finds percentiles within three per cent, and the longest latency exactly`() throws {
        var histogram = LatencyHistogram()
        for microsecond in (1...1000).shuffled() { histogram.record(.microseconds(microsecond)) }
        for share in [0.01, 0.5, 0.9, 0.99] {
            let found = try #require(histogram.percentile(share)) / .microseconds(1)
            #expect((share * 1000...share * 1032).contains(found))
        }
        #expect(histogram.percentile(1) == .microseconds(1000))
        #expect(histogram.longest == .microseconds(1000))
    }

    @Test func `a histogram without answers has no percentile`() {
        #expect(LatencyHistogram().percentile(0.5) == nil)
    }

    @Test(arguments: [
        Duration.seconds(-1), .zero, .nanoseconds(63), .nanoseconds(64), .nanoseconds(127), .nanoseconds(128),
        .seconds(1 << 33), .seconds(Int64.max),
    ])
    func `a histogram takes negative and huge latencies`(_ latency: Duration) {
        var histogram = LatencyHistogram()
        histogram.record(latency)
        #expect(histogram.count == 1)
        #expect(histogram.longest == max(latency, .zero))
        #expect(histogram.percentile(0.5).map { $0 <= histogram.longest } == true)
    }
}
