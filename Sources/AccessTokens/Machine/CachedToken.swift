import TokenServiceConcurrency

extension TokenService {
    /// A token that may be handed out, with its deadlines on the service's clock.
    struct CachedToken: Sendable {
        let token: AccessToken
        /// When it stops being handed out; `nil`: not before it is invalidated.
        private(set) var expiry: Duration?
        /// The time between hard expiry and real expiry; zero after a refusal, which no later failure undoes.
        private var leeway: Duration
        /// Whether it is handed out beyond hard expiry, because a load failed.
        private(set) var isInLeeway = false
        /// Where its soft window begins; `nil`: it has none.
        let refreshStart: Duration?
        /// When a caller starts a refresh: in the soft window, later after a failure; `nil` for none.
        var refreshFrom: Duration?
        private(set) var failedRefreshes = 0

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
            // Avoid refresh loops: no refresh within a quarter of the remaining life, at most 30 s.
            let rest = Self.rest(until: expiry, at: now)
            refreshStart = wish.map { max(start + $0, now + rest) }
            refreshFrom = refreshStart
            self.expiry = expiry
        }

        /// A token from the store, `age` after its load began; the wall clock may have been moved, so the age is clamped to the
        /// lifetime.
        init(restored token: AccessToken, age: Duration, at now: Duration, policy: RefreshPolicy, jitter: Double) {
            let start = now - min(max(age, .zero), max(token.lifetime ?? .zero, .zero))
            self.init(token, from: start, at: now, policy: policy, jitter: jitter)
        }

        /// The same token, handed out until shortly before its real expiry; `nil` if that time has come.
        func inLeeway(at now: Duration) -> CachedToken? {
            var cached = self
            if !isInLeeway, let expiry {
                cached.isInLeeway = true
                cached.expiry = expiry + RefreshPolicy.lastUse(ofLeeway: leeway)
            }
            return cached.isValid(at: now) ? cached : nil
        }

        /// Puts the next refresh off after a failure; returns the error as callers and events get it.
        mutating func refreshFailed(
            _ error: TokenServiceError, retryAfter: Duration?, isCostly: Bool, backOff: inout BackOff, random: inout SplitMix64,
            at now: Duration
        ) -> TokenServiceError {
            failedRefreshes += 1
            let error = backOff.judge(error)
            let wish = RefreshPolicy.honoured(retryAfter: retryAfter)
            if error.remedy != .retry { leeway = .zero }
            if error.remedy == .signIn {
                refreshFrom = nil
            } else if let wish {
                // A server's `Retry-After` holds beyond hard expiry, for callers too; our own pauses never do.
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

        /// Postpones the next check, because another service is refreshing.
        mutating func rest(at now: Duration) {
            refreshFrom = expiry == nil ? nil : now + Self.rest(until: expiry, at: now)
        }

        private static func rest(until expiry: Duration?, at now: Duration) -> Duration {
            expiry.map { min(max($0 - now, .zero).divided(by: 4), RefreshPolicy.shortestRefreshPause) } ?? .zero
        }

        /// Ends the pause before the next refresh, because the user asked to try again.
        mutating func endPause() {
            failedRefreshes = 0
            refreshFrom = refreshStart
        }

        /// Whether it may be handed out at this time.
        func isValid(at now: Duration) -> Bool {
            expiry.map { now < $0 } ?? true
        }
    }
}

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

    fileprivate static func counted(_ lifetime: Duration) -> Duration {
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

    /// The jitter clamped to a share from 0 to 1; zero if it is not a number.
    static func share(_ jitter: Double) -> Double {
        jitter > 0 ? min(jitter, 1) : 0
    }
}

extension Duration {
    /// The same as `/`, which takes a thousand instructions on Linux; a load divides six times.
    fileprivate func divided(by divisor: Int) -> Duration {
        Duration(attoseconds: attoseconds / Int128(divisor))
    }

    /// The same as `*` for shares of up to a few years, to the nanosecond; for the same reason.
    func scaled(by factor: Double) -> Duration {
        let nanoseconds = Double(Int64(clamping: attoseconds / 1_000_000_000)) * factor
        return Duration(attoseconds: Int128(Int64(nanoseconds.rounded())) * 1_000_000_000)
    }
}

extension SplitMix64 {
    /// A number from 0 up to 1, to spread what many services would otherwise do at the same moment.
    mutating func jitter() -> Double {
        Double.random(in: 0..<1, using: &self)
    }
}

extension TokenService.StateMachine {
    /// Why a token that a flight brought can't be used; `nil` if it can at least be given to the waiters.
    func flaw(of token: AccessToken, by flight: borrowing Flight, at now: Duration) -> TokenServiceError? {
        if rejections.contains(token, at: now) { return TokenServiceError(.tokenRejectedBefore) }
        if let lifetime = token.lifetime, flight.start + RefreshPolicy.counted(lifetime) <= now {
            return TokenServiceError(.tokenExpiredOnArrival)
        }
        return token.isUnusable ? TokenServiceError(.loadFailed, underlying: EmptyAccessToken()) : nil
    }

    /// Whether a token that a flight brought will be handed out, if only to the waiters.
    func isServable(_ token: AccessToken, by flight: borrowing Flight, at now: Duration) -> Bool {
        guard flaw(of: token, by: flight, at: now) == nil else { return false }
        guard state.token != nil, let lifetime = token.lifetime else { return true }
        return now < flight.start + policy.hardExpiry(forLifetime: lifetime)
    }

    /// When a caller that gets this token starts a refresh; `nil`: never.
    ///
    /// A load that no caller waits for doesn't keep a program alive. If the program ends in the middle of a load that spends a
    /// refresh token, the server has rotated the token, and the new one is lost. A young program may be a tool that ends soon, so
    /// at first such a load starts only if a caller waits for it.
    func refreshStart(of cached: CachedToken) -> Duration? {
        guard !isDrained else { return nil }
        return spendsGrant ? cached.refreshFrom.map { max($0, RefreshPolicy.earliestSpending) } : cached.refreshFrom
    }

    private var spendsGrant: Bool { !isRepeatable && (borrowsGrant || grant.token?.refreshToken != nil) }

    /// Whether the program is so young that a load starts only if a caller waits for it.
    func isTooEarly(at now: Duration) -> Bool { spendsGrant && now < RefreshPolicy.earliestSpending }
}
