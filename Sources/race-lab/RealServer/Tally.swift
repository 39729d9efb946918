/// What callers of one kind, async or callback, got.
struct Tally: Sendable {
    let callers: Int
    /// How many of them have had a token.
    private(set) var served = 0
    private(set) var failures = 0
    private(set) var latencies = LatencyHistogram()

    init(callers: Int) {
        self.callers = callers
    }

    mutating func answered(after latency: Duration, isFirst: Bool) {
        latencies.record(latency)
        if isFirst { served += 1 }
    }

    mutating func failed() {
        failures += 1
    }
}
