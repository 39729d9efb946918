package import AccessTokens

/// The naive actor: check, await, set. It looks like the answer to the articles' question, but isn't.
///
/// Right: no data race, from any thread; a valid token is handed over without a load; a failure is not kept; the
/// service lives until its callers are answered.
///
/// Wrong:
/// - an actor is **re-entrant**: while one caller awaits its load, the next one enters, finds no token and loads as well. There
///   are as many loads as callers, as in ``UnpredictableTokenService``, and the last answer is kept, even if it is a revoked
///   token;
/// - a sign-out during a load is undone by the load's result;
/// - if a loader never answers, its caller waits forever; there is no time limit and no leeway, and all callers wait at expiry.
package actor ReentrantTokenService {
    private let loader: any TokenLoader
    private var token: KeptToken

    /// Creates a service without a token.
    ///
    /// - Parameters:
    ///   - loader: The source of new tokens.
    ///   - clock: The clock by which the token's validity is judged.
    package init(loader: some TokenLoader, clock: some Clock<Duration> = ContinuousClock()) {
        self.loader = loader
        token = KeptToken(clock: clock)
    }

    /// Returns the cached token, or loads one for this caller alone.
    package func retrieveToken() async throws -> AccessToken {
        // Check …
        if let token = token.valid { return token }
        // … await: here every other caller enters, and finds what this one found …
        let loaded = try await loader.loadToken(replacing: nil)
        // … set: overwrites whatever happened meanwhile.
        token.keep(loaded)
        return loaded
    }

    /// Forgets the token: the obvious way to write a sign-out.
    ///
    /// A load that is under way will undo it.
    package func signOut() {
        token.keep(nil)
    }
}
