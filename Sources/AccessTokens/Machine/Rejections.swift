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
}
