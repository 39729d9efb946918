import AccessTokens

/// Museum 22: back-off arithmetic overflows and disables refresh.
///
/// Each failure doubles the pause, which a cap bounds: 0.1 s, 0.2 s … a minute. The doubling itself is not bounded, and
/// wraps, so that nothing crashes. An outage goes on; the cap holds for an hour; at failure 58 the sum is below zero, the
/// smaller of it and a minute is below zero, and a pause below zero means, as in the settings file, that refreshing is
/// off. The server comes back, and nobody asks it.
///
/// Shipped: aws-sdk-java-v2#6805 at failure 58. Sits: in `pause`: what is bounded is the result, not the exponent.
actor OverflowingTokenService {
    private let loader: any TokenLoader
    private let elapsed: @Sendable () -> Duration
    private var token: KeptToken
    private var failures = 0
    private var lastFailure: (error: any Error, at: Duration)?

    init<C: Clock<Duration>>(loader: some TokenLoader, clock: C) {
        self.loader = loader
        token = KeptToken(clock: clock)
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
    }

    /// The milliseconds to wait after the last failure; less than none: refreshing is off.
    private var pause: Int {
        // 100 · 2⁵⁷ is more than there is.
        failures == 0 ? 0 : min(100 &<< (failures - 1), 60_000)
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        if let lastFailure, pause < 0 || elapsed() < lastFailure.at + .milliseconds(pause) { throw lastFailure.error }
        do {
            let loaded = try await loader.loadToken(replacing: nil)
            (failures, lastFailure) = (0, nil)
            token.keep(loaded)
            return loaded
        } catch {
            failures += 1
            lastFailure = (error, elapsed())
            throw error
        }
    }
}
