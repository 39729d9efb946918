/// The last token received, whose refresh token the next load uses; it outlives expiry and invalidation.
///
/// A grant that is replaced may still be good at the server. Each of these functions returns such a grant so that the program can
/// revoke it, but only once, even if the store still has it or reports it late.
struct Grant: Sendable {
    /// A failing store may keep an old grant; within two dozen grants it is removed or overwritten.
    private static let mostPast = 24

    /// Whether there is a store, which may return an old grant.
    let hasStore: Bool

    private(set) var token: AccessToken? {
        // This grant is in use again, so giving it up must be reported again.
        didSet { if let token { forget(token) } }
    }

    /// The last grants that the service has handed over or used up, as digests: they need little memory, and no secret outlives
    /// its use.
    private var past: [Int] = []

    init(hasStore: Bool) { self.hasStore = hasStore }

    /// Puts another grant, or none, in its place.
    mutating func put(_ token: AccessToken?, _ reason: DiscardedGrant.Reason) -> DiscardedGrant? {
        let last = self.token
        self.token = token
        return last.flatMap { giveUp($0, reason) }
    }

    /// Keeps a load's new grant, if possible.
    ///
    /// The load has used up the grant that it began with. If an older load has brought another grant meanwhile, one of the two is
    /// given up: the new one if it has no usable token and the other's token is, or is about to be, handed out; otherwise the
    /// other.
    ///
    /// - Parameters:
    ///   - used: The grant that the load has used.
    ///   - brings: Whether the new access token can be handed out.
    ///   - others: The tokens that are handed out, or are about to be.
    mutating func keep(
        _ new: AccessToken, using used: AccessToken?, bringsToken brings: Bool, beside others: @autoclosure () -> [AccessToken?]
    ) -> (isKept: Bool, givenUp: DiscardedGrant?) {
        guard let last = token, !isUsedUp(by: used) else {
            if let last = token { note(last) }
            token = new
            return (true, nil)
        }
        guard brings || !others().contains(where: { $0?.isSameGrant(as: last) ?? false }) else {
            return (false, turnAway(new, .superseded))
        }
        token = new
        return (true, giveUp(last, .superseded))
    }

    /// Whether the service has this grant, or has used it up or given it up.
    func knows(_ other: AccessToken) -> Bool {
        guard let token else { return past.contains(other.grantDigest) }
        // A store may keep the access token alone.
        let isSame = token.isSameGrant(as: other) || other.refreshToken == nil && !other.isUnusable && token.value == other.value
        return isSame || past.contains(other.grantDigest)
    }

    /// Whether a load that used the grant `used` has used this one up.
    func isUsedUp(by used: AccessToken?) -> Bool {
        guard let token else { return true }
        return used.map { $0.isSameGrant(as: token) } ?? false
    }

    /// Returns the grant to hand over when a token is given up; `nil` if the service keeps using the same refresh token.
    mutating func giveUp(_ last: AccessToken, _ reason: DiscardedGrant.Reason) -> DiscardedGrant? {
        if let refreshToken = last.refreshToken, refreshToken == token?.refreshToken { return nil }
        return handOver(last, reason)
    }

    /// The same as ``giveUp(_:_:)`` for a grant that the server has just issued to a load.
    mutating func turnAway(_ new: AccessToken, _ reason: DiscardedGrant.Reason) -> DiscardedGrant? {
        forget(new)
        return giveUp(new, reason)
    }

    /// The same as ``giveUp(_:_:)``, even while the service still uses the refresh token.
    mutating func handOver(_ last: AccessToken, _ reason: DiscardedGrant.Reason) -> DiscardedGrant? {
        guard note(last) else { return nil }
        // Without a refresh token there is nothing to revoke, but after a sign-out the program may revoke the access token
        // itself.
        guard last.refreshToken != nil || reason == .signedOut else { return nil }
        return DiscardedGrant(token: last, reason: reason)
    }

    /// Notes that a grant was handed over or used up; returns whether it wasn't noted before.
    @discardableResult
    private mutating func note(_ last: AccessToken) -> Bool {
        guard hasStore else { return true }
        let digest = last.grantDigest
        guard !past.contains(digest) else { return false }
        if past.count == Self.mostPast { past.removeFirst() }
        past.append(digest)
        return true
    }

    private mutating func forget(_ token: AccessToken) {
        guard !past.isEmpty else { return }
        let digest = token.grantDigest
        past.removeAll { $0 == digest }
    }
}

extension AccessToken {
    /// Whether no request can carry the token; then it is only a grant.
    package var isUnusable: Bool { value.isEmpty }

    /// Whether revoking one of the two revokes the other, too.
    package func isSameGrant(as other: AccessToken) -> Bool {
        refreshToken == other.refreshToken && (refreshToken != nil || value == other.value)
    }

    /// Two different grants have the same digest once in 2^64 cases.
    fileprivate var grantDigest: Int { (refreshToken ?? value).hashValue }
}

// MARK: Tokens that requests carry

/// The tokens of the current session: those that the service has handed out since the last reset.
///
/// It distinguishes a request of this session from one of an earlier user. All tokens but the last are kept as digests: they need
/// little memory, and no secret outlives its use. Two different tokens have the same digest once in 2^64 cases.
struct HandedOut: Sendable {
    /// With tokens of 5 minutes that is more than 3 hours, longer than a request is under way.
    static let limit = 64

    /// The last token as a string: most sessions of a command-line tool have only one, and a digest costs more than keeping the
    /// token.
    private var last: String?
    private var digests: [Int] = []

    var isEmpty: Bool { last == nil }

    func hasOther(than token: AccessToken?) -> Bool { !digests.isEmpty || last != nil && last != token?.value }

    mutating func note(_ token: AccessToken) {
        guard last != token.value else { return }
        if let last {
            if digests.count == Self.limit - 1 { digests.removeFirst() }
            digests.append(last.hashValue)
        }
        last = token.value
    }

    func contains(_ token: AccessToken) -> Bool {
        last == token.value || digests.contains(token.value.hashValue)
    }
}

extension TokenService.StateMachine {
    /// Whether the program may have a token of a session that an earlier run left in the store.
    var isSessionUnknown: Bool { keeper.isUnread || keeper.isShared && session.generation == 0 && !session.hasBegun }

    /// What to do with a refused request.
    enum Resending: Sendable {
        case with(AccessToken)
        /// The request was a retry with a token that is in use only because no other may be loaded.
        case refusedTwice(TokenServiceError)
        /// Wait for a token of this generation.
        case wait(generation: Int)
        /// Ask again after a call of this generation, which asks the store for the session.
        case afterRestore(generation: Int)
        /// Its session is over.
        case tooLate
    }
}

/// The tokens that resource servers refused, and the loads that followed.
struct Rejections: Sendable {
    // Whole tokens, not strings: a token hides its secret from mirrors, a string wouldn't.
    private(set) var tokens: [(token: AccessToken, until: Duration?, loads: Int)] = []
    private(set) var loads: [Duration] = []

    /// Whether the next load happens because of an invalidation, and so counts against the limit.
    private(set) var causeNextLoad = false

    /// Remembers a refused token until it has certainly expired, or until eight newer ones were refused.
    ///
    /// - Parameters:
    ///   - loads: How many loads have begun.
    ///   - end: When a token without a lifetime has expired; `nil`: never.
    mutating func remember(_ token: AccessToken, afterLoads loads: Int, until end: Duration?, at now: Duration) {
        tokens.removeAll { $0.token.value == token.value || $0.until.map { $0 <= now } ?? false }
        if tokens.count == RefreshPolicy.rememberedRejections { tokens.removeFirst() }
        let until = token.lifetime.map { now + RefreshPolicy.counted($0) } ?? end
        tokens.append((token, until, loads))
    }

    /// Forgets that a token was refused if a load that began afterwards brought it again.
    ///
    /// Servers that keep a token until it expires, as platforms do for their workloads, have no other, and the refusal may have
    /// been a resource's mistake. If it wasn't, the limit on loads holds.
    mutating func forget(_ token: AccessToken, loadedBy flight: borrowing TokenService.StateMachine.Flight) {
        guard !tokens.isEmpty, let load = flight.load else { return }
        tokens.removeAll { $0.token.value == token.value && $0.loads < load }
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

    /// The error to report if the next load would be one too many after refusals.
    func obstacle(at now: Duration) -> TokenServiceError? {
        guard causeNextLoad, let opens = limit(at: now) else { return nil }
        return TokenServiceError(.tooManyInvalidations).holding(until: opens)
    }

    /// When a refusal may cause a load again; `nil`: now.
    func limit(at now: Duration) -> Duration? {
        guard loads.count == RefreshPolicy.invalidationLimit else { return nil }
        let opens = loads[0] + RefreshPolicy.invalidationPeriod
        return now < opens ? opens : nil
    }

    /// The time from which no refused token can be handed out again, and no past load counts against the limit.
    var idleFrom: Duration? {
        var end = (loads.last ?? .zero) + (loads.isEmpty ? .zero : RefreshPolicy.invalidationPeriod)
        for (_, until, _) in tokens {
            guard let until else { return nil }
            end = max(end, until)
        }
        return end
    }
}

// MARK: The use of a new token

extension TokenService.StateMachine {
    /// What is wrong with a token that a flight brought; `nil` if it can at least be given to the waiters.
    func flaw(of token: AccessToken, by flight: borrowing Flight, at now: Duration) -> TokenServiceError? {
        if let lifetime = token.lifetime, flight.start + RefreshPolicy.counted(lifetime) <= now {
            return TokenServiceError(.tokenExpiredOnArrival)
        }
        return token.isUnusable ? TokenServiceError(.loadFailed, underlying: EmptyAccessToken()) : nil
    }

    /// Whether a token that a flight brought will be handed out, if only to the waiters.
    func isServable(_ token: AccessToken, by flight: borrowing Flight, at now: Duration) -> Bool {
        guard !rejections.contains(token, at: now), flaw(of: token, by: flight, at: now) == nil else { return false }
        guard state.token != nil, let lifetime = token.lifetime else { return true }
        return now < flight.start + policy.hardExpiry(forLifetime: lifetime)
    }

    /// When a caller that gets this token starts a refresh; `nil`: never.
    ///
    /// A load that no caller waits for doesn't keep a program alive. If the program ends in the middle of a load that spends a
    /// refresh token, the server has rotated the token and the new one is lost. A program in its first minute may be a
    /// short-lived tool, so until then such a load starts only if a caller waits for it. The same applies while the store can't save
    /// the refresh token.
    func refreshStart(of cached: CachedToken) -> Duration? {
        guard !isDrained else { return nil }
        guard spendsGrant else { return cached.refreshFrom }
        return !keeper.isBehind ? cached.refreshFrom.map { max($0, RefreshPolicy.earliestSpending) } : nil
    }

    var spendsGrant: Bool { !isRepeatable && (keeper.isLent || keeper.grant.token?.refreshToken != nil) }

    /// Whether the program started so recently that a load starts only if a caller waits for it.
    func isTooEarly(at now: Duration) -> Bool { spendsGrant && now < RefreshPolicy.earliestSpending }
}

/// A loader returned a token with an empty string.
private struct EmptyAccessToken: Error, CustomStringConvertible {
    let description = "The loader returned an empty access token. Check how it reads the token response."
}
