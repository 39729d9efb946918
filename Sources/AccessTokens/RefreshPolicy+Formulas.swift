extension RefreshPolicy {
    /// The leeway of a token: `min(maximumLeeway, lifetime / 10)`.
    ///
    /// | lifetime | leeway | hard expiry | refresh window | refresh from (jitter 0 … 1) |
    /// |---|---|---|---|---|
    /// | 5 s    | 0.5 s | 4.5 s    | 1.25 s | 3.25 … 3.375 s   |
    /// | 60 s   | 6 s   | 54 s     | 15 s   | 39 … 40.5 s      |
    /// | 5 min  | 30 s  | 270 s    | 75 s   | 195 … 202.5 s    |
    /// | 10 min | 60 s  | 540 s    | 150 s  | 390 … 405 s      |
    /// | 1 h    | 60 s  | 3,540 s  | 900 s  | 2,640 … 2,730 s  |
    /// | 24 h   | 60 s  | 86,340 s | 900 s  | 85,440 … 85,530 s |
    package func leeway(forLifetime lifetime: Duration) -> Duration {
        min(maximumLeeway, max(counted(lifetime), .zero) / 10)
    }

    /// When a token is no longer handed out, counted from its load's start: `lifetime - leeway`.
    package func hardExpiry(forLifetime lifetime: Duration) -> Duration {
        counted(lifetime) - leeway(forLifetime: lifetime)
    }

    /// When callers start a refresh ahead, counted from the load's start: the window before hard expiry is
    /// `min(lifetime / 4, maximumRefreshWindow)`, shortened by up to a tenth.
    ///
    /// A server's own wish, `refreshIn`, wins when it lies between the load's start and hard expiry.
    ///
    /// However early that is, a token rests after its arrival: a quarter of what is left of it, 30 s at most.
    ///
    /// - Parameters:
    ///   - lifetime: The token's lifetime.
    ///   - refreshIn: The server's wish, if it has one.
    ///   - jitter: `0 ..< 1`, drawn once per token.
    /// - Returns: `nil` when the window is empty: no refresh ahead.
    package func refreshStart(forLifetime lifetime: Duration, refreshIn: Duration?, jitter: Double) -> Duration? {
        let expiry = hardExpiry(forLifetime: lifetime)
        if let refreshIn, .zero < refreshIn, refreshIn < expiry { return refreshIn }
        let window = min(counted(lifetime) / 4, maximumRefreshWindow)
        guard window > .zero else { return nil }
        return expiry - window * (1 - Self.windowJitter * Self.share(jitter))
    }

    /// The pause after a number of consecutive failed loads: none, then doubling to a minute, lengthened by up to a quarter.
    ///
    /// | failures | pause (jitter 0 … 1) |
    /// |---|---|
    /// | 1 | none: a caller's first retry is free |
    /// | 2 | 1 … 1.25 s |
    /// | 3 | 2 … 2.5 s |
    /// | 4 | 4 … 5 s |
    /// | 7 | 32 … 40 s |
    /// | 8 and more | 60 … 75 s |
    package static func pause(afterFailures failures: Int, jitter: Double) -> Duration {
        guard failures > 1 else { return .zero }
        // The exponent is bounded before it is used: at failure 58 a competitor's arithmetic overflowed.
        let doubled = Duration.seconds(1 << min(failures - 2, 6))
        return min(doubled, longestPause) * (1 + pauseJitter * share(jitter))
    }

    /// The pause after a number of consecutive failed refreshes ahead: 30 s doubling to 300 s, lengthened likewise.
    ///
    /// | failures | pause (jitter 0 … 1) |
    /// |---|---|
    /// | 1 | 30 … 37.5 s |
    /// | 2 | 60 … 75 s |
    /// | 3 | 120 … 150 s |
    /// | 4 | 240 … 300 s |
    /// | 5 and more | 300 … 375 s |
    package static func refreshPause(afterFailures failures: Int, jitter: Double) -> Duration {
        let doubled = Duration.seconds(30 << min(max(failures, 1) - 1, 4))
        return min(doubled, longestRefreshPause) * (1 + pauseJitter * share(jitter))
    }

    /// A server's `Retry-After` as it is honoured: up to an hour; nothing for zero or less, which asks for no wait.
    package static func honoured(retryAfter: Duration?) -> Duration? {
        guard let retryAfter, retryAfter > .zero else { return nil }
        return min(retryAfter, retryAfterLimit)
    }

    /// Whatever was given, a share: also of what is no number.
    private static func share(_ jitter: Double) -> Double {
        jitter > 0 ? min(jitter, 1) : 0
    }

    private func counted(_ lifetime: Duration) -> Duration {
        min(lifetime, Self.longestLifetime)
    }
}
