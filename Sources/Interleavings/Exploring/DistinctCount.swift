import TokenServiceConcurrency

/// Counts distinct schedules, in one megabyte however many there are.
///
/// Exact up to its capacity. Beyond that it keeps the digests that end in a growing number of zeros, and multiplies: with
/// 2¹⁵ digests or more the result is off by about 0.5 %. Source: Flajolet, "On Adaptive Sampling", Computing 1990
/// (Wegman's method).
struct DistinctCount: Sendable {
    /// How many are counted exactly.
    static let capacity = 1 << 16

    private var digests: Set<UInt64> = []
    /// How many zeros a digest must end with.
    private var zeros = 0

    /// How many schedules were added, equal or not.
    private var added = 0

    /// How many different schedules were added.
    var value: Int { min(digests.count << zeros, added) }

    /// Adds an execution's choices: within one scenario and one model of time, equal choices mean equal executions.
    mutating func insert(_ choices: [Int], time: TimeModel = .whenIdle) {
        added += 1
        // Far from any choice, so that schedules of the two models are never equal.
        var digest: UInt64 = time == .whenIdle ? 0 : 0x9e37_79b9_7f4a_7c15
        for choice in choices {
            var mixer = SplitMix64(seed: digest ^ UInt64(truncatingIfNeeded: choice))
            digest = mixer.next()
        }
        guard digest.trailingZeroBitCount >= zeros else { return }
        digests.insert(digest)
        while digests.count > Self.capacity {
            zeros += 1
            digests = digests.filter { [zeros] in $0.trailingZeroBitCount >= zeros }
        }
    }
}
