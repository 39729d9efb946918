import AccessTokens

/// Museum 29: a transport error is taken for a sign-out.
///
/// A refresh fails, so the session must be over: the grant is dropped, and the person may sign in again. But the train was
/// in a tunnel. The server had never heard of the request, and the refresh token was good for months.
///
/// Shipped: OAuthenticator [R], tuist PR#10276. Sits: in a `catch` that does not ask what was thrown.
actor SigningOutTokenService {
    struct NobodySignedIn: Error, CustomStringConvertible {
        let description = "nobody is signed in"
    }

    private let loader: any TokenLoader
    private var token: KeptToken
    private var grant: AccessToken?

    init(loader: some TokenLoader, signedInWith token: AccessToken, clock: some Clock<Duration>) {
        self.loader = loader
        self.token = KeptToken(clock: clock)
        self.token.keep(token)
        grant = token
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        guard let grant else { throw NobodySignedIn() }
        do {
            let renewed = try await loader.loadToken(replacing: grant)
            self.grant = renewed
            token.keep(renewed)
            return renewed
        } catch {
            // Only the server can say that the grant is no good, and only in so many words.
            self.grant = nil
            throw error
        }
    }
}
