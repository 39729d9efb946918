/// A histogram of latencies whose buckets are at most 1/32 of their value wide, however long the latency.
///
/// Source of the idea: HdrHistogram, Gil Tene.
struct Latencies: Sendable {
    private static let steps = 32
    private var buckets = [Int](repeating: 0, count: 64 * steps)
    private(set) var count = 0
    private(set) var highest = 0

    mutating func record(_ latency: Duration) {
        let nanoseconds = max(0, Int(latency / .nanoseconds(1)))
        buckets[Self.bucket(of: nanoseconds)] += 1
        count += 1
        highest = max(highest, nanoseconds)
    }

    mutating func merge(_ other: Latencies) {
        for index in buckets.indices { buckets[index] += other.buckets[index] }
        count += other.count
        highest = max(highest, other.highest)
    }

    /// The latency in nanoseconds that this part of all calls did not exceed, rounded up to its bucket's end.
    func percentile(_ part: Double) -> Double {
        var left = Int((Double(count) * part).rounded(.up))
        for (index, number) in buckets.enumerated() where number > 0 {
            left -= number
            if left <= 0 { return Double(min(Self.end(of: index), highest)) }
        }
        return Double(highest)
    }

    /// Returns how many calls took at least that long.
    func count(from latency: Duration) -> Int {
        buckets[Self.bucket(of: Int(latency / .nanoseconds(1)))...].reduce(0, +)
    }

    private static func bucket(of value: Int) -> Int {
        guard value >= steps else { return value }
        // The five bits below the highest one choose the step within the power of two.
        let power = Int.bitWidth - 1 - value.leadingZeroBitCount
        return (power - 4) * steps + ((value >> (power - 5)) & (steps - 1))
    }

    private static func end(of bucket: Int) -> Int {
        guard bucket >= steps else { return bucket }
        let power = bucket / steps + 4
        return (1 << power) + ((bucket % steps + 1) << (power - 5)) - 1
    }
}
