import TokenServiceConcurrency

extension TokenService {
    /// A token that may be handed out, with its deadlines on the service's clock.
    struct CachedToken: Sendable {
        let token: AccessToken
        /// When it stops being handed out; `nil`: not before it is invalidated.
        private(set) var expiry: Duration?
        /// The time between hard expiry and real expiry; zero once the token must not be used in it: after a refusal before hard
        /// expiry, or a failure that waiting can't mend.
        private var leeway: Duration
        /// Whether it is handed out beyond hard expiry, because a load failed.
        private(set) var isInLeeway = false
        /// Where its soft window begins; `nil`: it has none.
        let refreshStart: Duration?
        /// When a caller starts a refresh: in the soft window, later after a failure; `nil` for none.
        var refreshFrom: Duration?
        private(set) var failedRefreshes = 0
        /// The same token for the one retry of a refused request, if it is handed out although it was refused.
        ///
        /// It is another value of the same string, so that the service knows a token that was refused in a retry as well.
        private(set) var forRetry: AccessToken?

        /// A token that arrives now, and whose lifetime counts from `start`.
        @inline(never)
        init(_ token: AccessToken, from start: Duration, at now: Duration, policy: RefreshPolicy, jitter: Double) {
            self.token = token
            guard let lifetime = token.lifetime.map(RefreshPolicy.counted) else {
                (expiry, leeway, refreshStart, refreshFrom) = (nil, .zero, nil, nil)
                return
            }
            let hardExpiry = policy.hardExpiry(ofCounted: lifetime), expiry = start + hardExpiry
            leeway = lifetime - hardExpiry
            let wish = policy.refreshStart(
                ofCounted: lifetime, expiringAt: hardExpiry, refreshIn: token.refreshIn, jitter: jitter)
            // Avoid refresh loops: no refresh within a quarter of the remaining lifetime, at most 30 s.
            let pause = Self.shortestPause(until: expiry, at: now)
            refreshStart = wish.map { max(start + $0, now + pause) }
            refreshFrom = refreshStart
            self.expiry = expiry
        }

        /// When a token that has just arrived really expires; `nil`: never.
        ///
        /// The machine remembers it: with another field, copying this value would take many more instructions.
        var realEnd: Duration? { expiry.map { $0 + leeway } }

        /// A token from the store, `age` after its load began; the wall clock may have been moved, so the age is clamped to the
        /// lifetime.
        init(restored token: AccessToken, age: Duration, at now: Duration, policy: RefreshPolicy, jitter: Double) {
            let start = now - min(max(age, .zero), max(token.lifetime ?? .zero, .zero))
            self.init(token, from: start, at: now, policy: policy, jitter: jitter)
        }

        /// Returns the same token, handed out until shortly before its real expiry; `nil` if that time has passed.
        func inLeeway(at now: Duration) -> CachedToken? {
            var cached = self
            if !isInLeeway, let expiry {
                cached.isInLeeway = true
                cached.expiry = expiry + RefreshPolicy.lastUse(ofLeeway: leeway)
            }
            return cached.isValid(at: now) ? cached : nil
        }

        /// Keeps a refused token in use until a refusal may cause a load again, but not inside its leeway.
        mutating func survive(until opens: Duration) {
            forRetry = token.copy
            expiry = min(expiry ?? opens, opens)
            if !isInLeeway { leeway = .zero }
        }

        /// Postpones the next refresh after a failure; returns the error as callers and events get it.
        mutating func refreshFailed(
            _ error: TokenServiceError, of spender: Int?, retryAfter: Duration?, isCostly: Bool, backOff: inout BackOff,
            random: inout SplitMix64, at now: Duration
        ) -> TokenServiceError {
            failedRefreshes += 1
            let error = backOff.judge(error, of: spender, isCostly: isCostly, at: now)
            let wish = RefreshPolicy.honoured(retryAfter: retryAfter)
            if error.remedy != .retry { leeway = .zero }
            if error.remedy == .signIn {
                refreshFrom = nil
            } else if let wish {
                // A server's `Retry-After` also applies to callers after hard expiry; our own pauses don't.
                refreshFrom = now + wish
                backOff.hold(error, until: now + wish)
            } else {
                let isSlow = isCostly || error.remedy != .retry, jitter = random.jitter()
                let pause = RefreshPolicy.refreshPause(afterFailures: isSlow ? .max : failedRefreshes, jitter: jitter)
                // Inside the leeway there is no time for the usual pauses: a quarter of it allows four attempts.
                let short = leeway.divided(by: 4).scaled(by: 1 + RefreshPolicy.pauseJitter * jitter)
                refreshFrom = now + (isInLeeway && !isSlow ? min(pause, short) : pause)
            }
            return error
        }

        /// Postpones the refresh, because the last one brought nothing that can be used, as while another service refreshes.
        mutating func postponeRefresh(at now: Duration) {
            refreshFrom = expiry == nil ? nil : now + Self.shortestPause(until: expiry, at: now)
        }

        private static func shortestPause(until expiry: Duration?, at now: Duration) -> Duration {
            expiry.map { min(max($0 - now, .zero).divided(by: 4), RefreshPolicy.shortestRefreshPause) } ?? .zero
        }

        /// Ends the pause before the next refresh, because the user asked to try again.
        mutating func endPause() {
            failedRefreshes = 0
            refreshFrom = refreshStart
        }

        /// Whether a refresh has failed or was postponed, so that the next one has to wait.
        func isPaused(at now: Duration) -> Bool {
            guard failedRefreshes > 0 || refreshFrom != refreshStart else { return false }
            return refreshFrom.map { now < $0 } ?? true
        }

        /// Whether the token may be handed out at this time.
        func isValid(at now: Duration) -> Bool {
            expiry.map { now < $0 } ?? true
        }
    }
}

extension AccessToken {
    /// Whether the token, which expires at `end`, is good for so long; more than half of its lifetime counts as half.
    ///
    /// Otherwise calls that ask for more than the server grants would start load after load.
    func isGood(for minimum: Duration, until end: Duration?, at now: Duration) -> Bool {
        guard let end, let lifetime else { return true }
        return end - now >= min(minimum, RefreshPolicy.counted(lifetime).divided(by: 2))
    }
}

// MARK: Failing loads

/// The pace of failing loads: one failure count, one moment before which the server is not asked.
struct BackOff: Sendable {
    /// When the server may be asked again.
    enum Gate: Sendable {
        case open
        case opens(at: Duration)
        /// Not before a new sign-in, because the grant itself was refused.
        case closed
    }

    private(set) var gate = Gate.open
    var isClosed: Bool { if case .closed = gate { true } else { false } }
    private(set) var failures = 0
    private(set) var lastError: TokenServiceError?
    /// Refusals since the last success that may be about the grant or about the client, and when the first one came.
    private var unclearRefusals = 0, unclearSince: Duration?
    /// The first load since the last success that may have spent the grant without a response, and when that was known.
    private var lostResponse: (flight: Int, moment: Duration)?

    /// Counts a failure and returns it with the moment of the next attempt.
    ///
    /// - Parameters:
    ///   - spender: The flight, if its load may have spent the grant.
    ///   - isCostly: Whether each attempt spends a refresh token; then the pause is the longest, unless the server names one.
    @inline(never)
    mutating func record(
        _ error: TokenServiceError, of spender: Int? = nil, retryAfter: Duration?, isCostly: Bool = false, jitter: Double,
        at now: Duration
    ) -> TokenServiceError {
        failures += 1
        let error = judge(error, of: spender, isCostly: isCostly, at: now)
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
    /// Keeps the count of unclear refusals, so that repeatedly tapping “try again” doesn't hide an invalid grant.
    mutating func reopen() {
        (gate, failures, lastError) = (.open, 0, nil)
    }

    /// Counts an unclear refusal; after several in a row, over some time, the grant counts as refused.
    ///
    /// Of a refusal that follows a lost response, the error tells when that was: the lost response is the usual reason.
    fileprivate mutating func judge(
        _ error: TokenServiceError, of spender: Int?, isCostly: Bool, at now: Duration
    ) -> TokenServiceError {
        var error = error
        // The server has responded, with another grant.
        if isCostly { lostResponse = nil }
        if error.remedy == .signInOrRegistration {
            unclearRefusals += 1
            let start = unclearSince ?? now
            unclearSince = start
            if unclearRefusals >= RefreshPolicy.unclearRefusalLimit, now - start >= RefreshPolicy.unclearRefusalPeriod {
                error = TokenServiceError(error.code, underlying: error.underlying, remedy: .signIn)
            }
        }
        if let spender, lostResponse == nil, error.hasNoResponse { lostResponse = (spender, now) }
        let isRefusal = error.remedy == .signIn || error.remedy == .signInOrRegistration
        guard isRefusal, let lostResponse, lostResponse.flight != spender else { return error }
        return error.following(lostResponseAt: lostResponse.moment)
    }

    /// Lets the server be asked again from `moment`; counts no failure.
    @discardableResult
    fileprivate mutating func hold(_ error: TokenServiceError, until moment: Duration) -> TokenServiceError {
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

    /// When the failure counts no longer matter: the longest pause after the moment of the next attempt.
    ///
    /// Unclear refusals matter for twice the time in which they become a refusal of the grant, so that a caller that comes every
    /// ten minutes learns of it.
    var idleFrom: Duration? {
        let unclearEnd = unclearSince.map { $0 + RefreshPolicy.unclearRefusalPeriod * 2 } ?? .zero
        return switch gate {
        case .open: unclearEnd
        case .opens(let moment): max(moment + RefreshPolicy.longestPause, unclearEnd)
        case .closed: nil
        }
    }
}

// MARK: The formulas of both

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
        leeway(ofCounted: Self.counted(lifetime))
    }

    /// When a token is no longer handed out, counted from its load's start: `lifetime - leeway`.
    package func hardExpiry(forLifetime lifetime: Duration) -> Duration {
        hardExpiry(ofCounted: Self.counted(lifetime))
    }

    /// How long a token is handed out after a transient failure: until a tenth of the leeway is left.
    ///
    /// Counted from the start of its load.
    ///
    /// Callers don't notice an outage that is over by then. It begins to matter when the refresh window opens, so they don't
    /// notice an outage shorter than the last column, whenever it begins.
    ///
    /// | lifetime | handed out until | outage that costs no caller |
    /// |---|---|---|
    /// | 5 s    | 4.95 s   | 1.575 s |
    /// | 60 s   | 59.4 s   | 18.9 s  |
    /// | 5 min  | 297 s    | 94.5 s  |
    /// | 10 min | 594 s    | 189 s   |
    /// | 1 h    | 3,594 s  | 864 s   |
    /// | 24 h   | 86,394 s | 864 s   |
    package func lastUse(forLifetime lifetime: Duration) -> Duration {
        let lifetime = Self.counted(lifetime)
        return hardExpiry(ofCounted: lifetime) + Self.lastUse(ofLeeway: leeway(ofCounted: lifetime))
    }

    fileprivate static func lastUse(ofLeeway leeway: Duration) -> Duration {
        leeway - leeway.divided(by: unusedPartOfLeeway)
    }

    /// When callers start a refresh ahead, counted from the load's start: the window before hard expiry is
    /// `min(lifetime / 4, maximumRefreshWindow)`, shortened by up to a tenth.
    ///
    /// A server's own suggestion, `refreshIn`, wins if it lies between the load's start and hard expiry.
    ///
    /// However early that is, a new token isn't refreshed within a quarter of its remaining life, 30 s at most.
    ///
    /// - Parameters:
    ///   - lifetime: The token's lifetime.
    ///   - refreshIn: The server's suggestion, if it has one.
    ///   - jitter: `0 ..< 1`, drawn once per token.
    /// - Returns: `nil` when the window is empty: no refresh ahead.
    package func refreshStart(forLifetime lifetime: Duration, refreshIn: Duration?, jitter: Double) -> Duration? {
        let lifetime = Self.counted(lifetime)
        return refreshStart(
            ofCounted: lifetime, expiringAt: hardExpiry(ofCounted: lifetime), refreshIn: refreshIn, jitter: jitter)
    }

    // The same functions for a lifetime that is already clamped, so that it is compared only once.

    package static func counted(_ lifetime: Duration) -> Duration {
        min(max(lifetime, .zero), longestLifetime)
    }

    private func leeway(ofCounted lifetime: Duration) -> Duration {
        min(maximumLeeway, lifetime.divided(by: 10))
    }

    fileprivate func hardExpiry(ofCounted lifetime: Duration) -> Duration {
        lifetime - leeway(ofCounted: lifetime)
    }

    fileprivate func refreshStart(
        ofCounted lifetime: Duration, expiringAt expiry: Duration, refreshIn: Duration?, jitter: Double
    ) -> Duration? {
        guard maximumRefreshWindow > .zero else { return nil }
        if let refreshIn, .zero < refreshIn, refreshIn < expiry { return refreshIn }
        let window = min(lifetime.divided(by: 4), maximumRefreshWindow)
        guard window > .zero else { return nil }
        return expiry - window.scaled(by: 1 - Self.windowJitter * Self.share(jitter))
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

    /// The jitter clamped to a share from 0 to 1; zero if it is not a number.
    fileprivate static func share(_ jitter: Double) -> Double {
        jitter > 0 ? min(jitter, 1) : 0
    }
}

extension Duration {
    /// The same as `/`, which takes a thousand instructions on Linux; a load divides six times.
    func divided(by divisor: Int) -> Duration {
        Duration(attoseconds: attoseconds / Int128(divisor))
    }

    /// A faster `*` for results of up to a few years, in whole nanoseconds.
    fileprivate func scaled(by factor: Double) -> Duration {
        let nanoseconds = Double(Int64(clamping: attoseconds / 1_000_000_000)) * factor
        return Duration(attoseconds: Int128(Int64(nanoseconds.rounded())) * 1_000_000_000)
    }
}

extension SplitMix64 {
    /// Returns a random number from 0 up to 1, so that many services don't act at the same moment.
    mutating func jitter() -> Double {
        Double.random(in: 0..<1, using: &self)
    }
}
