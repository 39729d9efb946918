import AccessTokens

/// Museum 19: a rotated refresh token is thrown away.
///
/// The caller's own task makes the exchange. The server takes the refresh token, which is good for one use, and sends the
/// next; the caller's screen is closed; its cancelled task throws before the new token is kept. What the service has now
/// is used up: the next caller presents it, and the server ends the session, as after a theft.
///
/// Shipped: Auth0.swift [S]: `.largeMinTTL` returned before the store; okta-idx-swift#120; ktor KTOR-8285. Sits: in the
/// line that loads: whatever makes it throw, after the server has decided, loses the grant.
actor GrantLosingTokenService {
    private let loader: any TokenLoader
    private var token: KeptToken
    private var grant: AccessToken

    init(loader: some TokenLoader, signedInWith token: AccessToken, clock: some Clock<Duration>) {
        self.loader = loader
        self.token = KeptToken(clock: clock)
        self.token.keep(token)
        grant = token
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        // The race: the caller's cancellation against the answer, which has the only good refresh token.
        let renewed = try await loader.loadToken(replacing: grant)
        grant = renewed
        token.keep(renewed)
        return renewed
    }
}
