extension Duration {
    /// The longest time that a server can name, ten years: whatever it calls longer ends no sooner than the process.
    static let longest = Duration.seconds(10 * 365 * 86_400)

    /// Returns a server's number of seconds as a duration of at most ``longest``; `nil` if it is negative or no number.
    ///
    /// `Duration.seconds(_:)` itself traps on NaN, on infinities and on large values.
    static func seconds(read seconds: Double) -> Duration? {
        guard seconds >= 0, seconds.isFinite else { return nil }
        return seconds < longest / .seconds(1) ? .seconds(seconds) : longest
    }
}
