extension Duration {
    /// The longest time that is counted, ten years: no process lives longer.
    package static let longest = Duration.seconds(10 * 365 * 86_400)

    /// Returns a number of seconds as a duration of at most ``longest``; `nil` if it is negative, infinite or not a number.
    ///
    /// `Duration.seconds(_:)` itself traps on NaN, on infinities and on large values.
    package static func seconds(read seconds: Double) -> Duration? {
        guard seconds >= 0, seconds.isFinite else { return nil }
        return seconds < longest / .seconds(1) ? .seconds(seconds) : longest
    }
}
