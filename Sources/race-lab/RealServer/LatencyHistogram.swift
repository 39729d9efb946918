/// How long answers took: counts in buckets that are three per cent wide, whatever their number.
struct LatencyHistogram: Sendable {
    /// Each power of two has 32 buckets; up to 63 ns every nanosecond has its own.
    private var buckets = [Int](repeating: 0, count: 59 * 32 + 32)
    private(set) var count = 0
    private(set) var longest = Duration.zero

    mutating func record(_ latency: Duration) {
        let latency = max(latency, .zero)
        longest = max(longest, latency)
        count += 1
        buckets[Self.bucket(of: latency.nanoseconds)] += 1
    }

    /// The latency that a share of all answers did not exceed, `0 ... 1`; `nil` without answers.
    func percentile(_ share: Double) -> Duration? {
        guard count > 0 else { return nil }
        let rank = min(max(Int((share * Double(count)).rounded(.up)), 1), count)
        var seen = 0
        for (bucket, entries) in buckets.enumerated() {
            seen += entries
            if seen >= rank { return min(.nanoseconds(Self.upperBound(of: bucket)), longest) }
        }
        return longest
    }

    private static func bucket(of nanoseconds: Int64) -> Int {
        guard nanoseconds >= 64 else { return Int(nanoseconds) }
        let shift = 58 - nanoseconds.leadingZeroBitCount
        return shift * 32 + Int(nanoseconds >> shift)
    }

    private static func upperBound(of bucket: Int) -> Int64 {
        guard bucket >= 64 else { return Int64(bucket) }
        let shift = bucket / 32 - 1
        let next = Int64(bucket % 32 + 33)
        // The last bucket has no next one to count.
        return next.multipliedReportingOverflow(by: 1 << shift).overflow ? .max : next << shift - 1
    }
}

extension Duration {
    /// The whole nanoseconds of a duration of less than 292 years.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflows ? .max : product + attoseconds / 1_000_000_000
    }

    /// The duration with a unit that suits it and two or three digits.
    var short: String {
        let units: [(size: Double, from: Double, name: String)] = [
            (3600e9, 2, "h"), (60e9, 2, "min"), (1e9, 1, "s"), (1e6, 1, "ms"), (1e3, 1, "µs"),
        ]
        let value = Double(nanoseconds)
        guard let unit = units.first(where: { value >= $0.size * $0.from }) else { return "\(nanoseconds) ns" }
        let number = value / unit.size
        return "\(number < 10 ? "\((number * 10).rounded() / 10)" : "\(Int(number.rounded()))") \(unit.name)"
    }
}
