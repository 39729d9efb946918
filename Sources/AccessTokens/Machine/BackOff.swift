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
    /// - Parameter isCostly: Whether each attempt spends a refresh token; then the pause is the longest, unless the server names
    ///   one.
    @inline(never)
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
        return hold(error, until: now + (RefreshPolicy.honoured(retryAfter: retryAfter) ?? pause))
    }

    /// Ends every pause.
    ///
    /// Keeps the count of unclear refusals, so that tapping “try again” each time doesn't hide a dead grant.
    mutating func reopen() {
        let refusals = unclearRefusals
        self = BackOff()
        unclearRefusals = refusals
    }

    /// Counts an unclear refusal; after several in a row the grant counts as refused.
    mutating func judge(_ error: TokenServiceError) -> TokenServiceError {
        guard error.remedy == .signInOrRegistration else { return error }
        unclearRefusals += 1
        guard unclearRefusals >= RefreshPolicy.unclearRefusalLimit else { return error }
        return TokenServiceError(error.code, underlying: error.underlying, remedy: .signIn)
    }

    /// Closes the gate until `moment` without counting a failure: the server asked for the wait while a token was still good.
    @discardableResult
    mutating func hold(_ error: TokenServiceError, until moment: Duration) -> TokenServiceError {
        gate = .opens(at: moment)
        let error = error.holding(until: moment)
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

    /// When the failure count no longer matters: the longest pause after the moment of the next attempt.
    var restsFrom: Duration? {
        switch gate {
        case .open: .zero
        case .opens(let moment): moment + RefreshPolicy.longestPause
        case .closed: nil
        }
    }
}

/// The tokens that resource servers refused, and the loads that followed.
struct Rejections: Sendable {
    // Whole tokens, not strings: a token hides its secret from mirrors, a string wouldn't.
    private(set) var tokens: [(token: AccessToken, until: Duration?)] = []
    private(set) var loads: [Duration] = []

    /// Whether the next load happens because of an invalidation, and so counts against the limit.
    private(set) var causeNextLoad = false

    /// Remembers a refused token until it has certainly expired, or until eight newer ones were refused.
    mutating func remember(_ token: AccessToken, at now: Duration) {
        tokens.removeAll { $0.token.value == token.value || $0.until.map { $0 <= now } ?? false }
        if tokens.count == RefreshPolicy.rememberedRejections { tokens.removeFirst() }
        let until = token.lifetime.map { now + min(max($0, .zero), RefreshPolicy.longestLifetime) }
        tokens.append((token, until))
    }

    /// Whether this very string was refused.
    func contains(_ token: AccessToken, at now: Duration) -> Bool {
        tokens.contains { $0.token.value == token.value && ($0.until.map { now < $0 } ?? true) }
    }

    /// Notes that a refusal causes the next load.
    mutating func markNextLoad() {
        causeNextLoad = true
    }

    /// Counts a load that starts now, if a refusal caused it.
    mutating func loadStarts(at now: Duration) {
        guard causeNextLoad else { return }
        causeNextLoad = false
        if loads.count == RefreshPolicy.invalidationLimit { loads.removeFirst() }
        loads.append(now)
    }

    /// The error to report if refusals have caused too many loads lately.
    func obstacle(at now: Duration) -> TokenServiceError? {
        guard causeNextLoad, loads.count == RefreshPolicy.invalidationLimit else { return nil }
        let opens = loads[0] + RefreshPolicy.invalidationPeriod
        return now < opens ? TokenServiceError(.tooManyInvalidations).holding(until: opens) : nil
    }

    /// When no refused token can be handed out again, and no further load would count as caused by refusals.
    var restsFrom: Duration? {
        var end = (loads.last ?? .zero) + (loads.isEmpty ? .zero : RefreshPolicy.invalidationPeriod)
        for (_, until) in tokens {
            guard let until else { return nil }
            end = max(end, until)
        }
        return end
    }
}

extension RefreshPolicy {
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
        // The exponent is bounded before it is used: another library's arithmetic overflowed at failure 58.
        let doubled = Duration.seconds(1 << min(failures - 2, 6))
        return min(doubled, longestPause).scaled(by: 1 + pauseJitter * share(jitter))
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
        return min(doubled, longestRefreshPause).scaled(by: 1 + pauseJitter * share(jitter))
    }

    /// A server's `Retry-After` as it is honoured: up to an hour; `nil` for zero or less, which asks for no wait.
    package static func honoured(retryAfter: Duration?) -> Duration? {
        guard let retryAfter, retryAfter > .zero else { return nil }
        return min(retryAfter, retryAfterLimit)
    }
}
