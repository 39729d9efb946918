/// The pace of failing loads: one failure count, one moment before which the server is not asked.
struct BackOff: Sendable {
    /// When the server may be asked again.
    enum Gate: Sendable {
        case open
        case opens(at: Duration)
        /// Not before a new sign-in: the grant itself was refused.
        case closed
    }

    private(set) var gate = Gate.open
    private(set) var failures = 0
    private var lastError: TokenServiceError?

    /// Counts a failure and returns it with the moment of the next attempt.
    mutating func record(
        _ error: TokenServiceError, retryAfter: Duration?, jitter: Double, at now: Duration
    ) -> TokenServiceError {
        failures += 1
        if error.remedy == .signIn {
            gate = .closed
            lastError = error
            return error
        }
        let pause =
            RefreshPolicy.honoured(retryAfter: retryAfter)
            ?? (error.remedy == .clientRegistration
                ? RefreshPolicy.longestPause : RefreshPolicy.pause(afterFailures: failures, jitter: jitter))
        return hold(error, until: now + pause)
    }

    /// Asks no more until `moment`, without counting a failure: the server said so while a token was still good.
    @discardableResult
    mutating func hold(_ error: TokenServiceError, until moment: Duration) -> TokenServiceError {
        gate = .opens(at: moment)
        var error = error
        error.retryOffset = moment
        lastError = error
        return error
    }

    /// The last error, if the server must not be asked at this moment.
    func obstacle(at now: Duration) -> TokenServiceError? {
        switch gate {
        case .open: nil
        case .opens(let moment): now < moment ? lastError : nil
        case .closed: lastError
        }
    }
}
