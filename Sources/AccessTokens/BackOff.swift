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
    /// Refusals since the last success that may be about the grant or about the client.
    private var unclearRefusals = 0

    /// Counts a failure and returns it with the moment of the next attempt.
    ///
    /// - Parameter isCostly: Whether each attempt spends something: then the pause is the longest.
    mutating func record(
        _ error: TokenServiceError, retryAfter: Duration?, isCostly: Bool = false, jitter: Double, at now: Duration
    ) -> TokenServiceError {
        failures += 1
        let error = judge(error)
        if error.remedy == .signIn {
            gate = .closed
            lastError = error
            return error
        }
        let pause =
            isCostly || error.remedy != .retry
            ? RefreshPolicy.longestPause : RefreshPolicy.pause(afterFailures: failures, jitter: jitter)
        let wish = RefreshPolicy.honoured(retryAfter: retryAfter) ?? pause
        return hold(error, until: now + (isCostly ? max(wish, pause) : wish))
    }

    /// Ends every pause.
    ///
    /// What a server has refused it has refused: a person who taps “try again” each time learns it, too.
    mutating func reopen() {
        let refusals = unclearRefusals
        self = BackOff()
        unclearRefusals = refusals
    }

    /// A server that goes on refusing without saying what is taken at its word: the grant is dead.
    mutating func judge(_ error: TokenServiceError) -> TokenServiceError {
        guard error.remedy == .signInOrRegistration else { return error }
        unclearRefusals += 1
        guard unclearRefusals >= RefreshPolicy.unclearRefusalLimit else { return error }
        return TokenServiceError(error.code, underlying: error.underlying, remedy: .signIn)
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
