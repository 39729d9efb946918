/// The callers' results.
struct Tally: Sendable {
    /// How many callers have received a token.
    private(set) var served = 0
    private(set) var answers = 0
    var failures = 0
    /// The longest wait for an answer, not counting each caller's first; `nil`: there was none.
    private(set) var longestWait: Duration?
    /// The number of these answers by their wait in nanoseconds, rounded down to the upper six bits: within 3 %.
    private var waits: [Int64: Int] = [:]

    mutating func answered(after wait: Duration, isFirst: Bool) {
        answers += 1
        guard !isFirst else { return served += 1 }
        longestWait = max(longestWait ?? .zero, wait)
        let nanoseconds = max(wait.nanoseconds, 0), rest = max(58 - nanoseconds.leadingZeroBitCount, 0)
        waits[(nanoseconds >> rest) << rest, default: 0] += 1
    }

    /// Returns the time within which this share of the answers arrived, not counting each caller's first; `nil`: there were none.
    func wait(of part: Double) -> Duration? {
        var left = Double(waits.values.reduce(0, +)) * part
        for (nanoseconds, count) in waits.sorted(by: { $0.key < $1.key }) {
            left -= Double(count)
            if left <= 0 { return .nanoseconds(nanoseconds) }
        }
        return nil
    }
}
