import AccessTokens

/// The one token that a service of the gallery keeps, valid until its lifetime has passed since it was put here.
///
/// The articles' `AccessToken.isValid`, on a clock that a test can move. Like there, it knows no leeway: a token is called
/// valid a moment before its end, and the lifetime counts from the arrival although the server counts from the issue.
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

    /// How long the token is valid from this moment; `nil`: there is none, or it never ends.
    var left: Duration? {
        guard let kept, let lifetime = kept.token.lifetime else { return nil }
        return lifetime - (elapsed() - kept.arrival)
    }

    /// What a diagram shows of it: whether there is one.
    var description: String { kept == nil ? "none" : "one" }

    /// Puts a token in place of the earlier one; `nil` leaves none.
    mutating func keep(_ token: AccessToken?) {
        kept = token.map { ($0, elapsed()) }
    }
}
