import AccessTokens

/// The one token that a service of the gallery keeps, valid until its lifetime has passed since it was stored.
///
/// The articles' `AccessToken.isValid`, on a clock that a test can move. As there, there is no leeway: a token counts as valid
/// until the very end, and its lifetime counts from its arrival although the server counts from its issue.
struct KeptToken: Sendable, CustomStringConvertible {
    private let elapsed: @Sendable () -> Duration
    private var kept: (token: AccessToken, arrival: Duration)?

    init<C: Clock<Duration>>(clock: C) {
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
    }

    /// The token, if it is valid at this moment.
    var valid: AccessToken? {
        if let left, left <= .zero { return nil }
        return kept?.token
    }

    /// How long the token is still valid; `nil`: there is none, or it never expires.
    var left: Duration? {
        guard let kept, let lifetime = kept.token.lifetime else { return nil }
        return lifetime - (elapsed() - kept.arrival)
    }

    /// The text for a diagram: whether there is a token.
    var description: String { kept == nil ? "none" : "one" }

    /// Puts a token in place of the earlier one; `nil` leaves none.
    mutating func keep(_ token: AccessToken?) {
        kept = token.map { ($0, elapsed()) }
    }
}
