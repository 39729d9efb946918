/// The results of some rounds: their median, and the quartiles as their spread.
struct Sample: Codable, Sendable {
    let median: Double
    let low: Double
    let high: Double

    init(_ values: [Double]) {
        let sorted = values.sorted()
        /// The value at a fraction of the way, between two neighbours where need be.
        func at(_ fraction: Double) -> Double {
            guard let last = sorted.indices.last else { return .nan }
            let place = fraction * Double(last)
            let below = Int(place)
            let above = min(below + 1, last)
            return sorted[below] + (sorted[above] - sorted[below]) * (place - Double(below))
        }
        (low, median, high) = (at(0.25), at(0.5), at(0.75))
    }

    init(exactly value: Double) {
        self.init([value])
    }

    private init(median: Double, low: Double, high: Double) {
        (self.median, self.low, self.high) = (median, low, high)
    }

    /// The sample of the inverse values.
    var inverse: Sample { Sample(median: 1 / median, low: 1 / high, high: 1 / low) }
}
