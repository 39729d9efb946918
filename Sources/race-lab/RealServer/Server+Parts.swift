import AccessTokens
import AccessTokensFiles
import AccessTokensOAuth

/// What a service is made of for a real server.
extension Options.Server {
    private var secretMethod: ClientAuthentication { postsSecret ? .clientSecretPost : .clientSecretBasic }

    // Without a lifetime a token is kept: the lab then says so, instead of guessing when it expires.

    /// The loader of a client that acts in its own name.
    func loader(secret: String) throws(UsageError) -> ClientCredentialsLoader {
        do {
            return try ClientCredentialsLoader(
                tokenURL: tokenURL, clientID: clientID, clientSecret: secret, scope: scope,
                authentication: secretMethod, lifetimeWhenMissing: nil)
        } catch { throw UsageError("--token-url: \(error)") }
    }

    /// The loader of a client that acts for a user; a public client has no secret.
    func loader(ofUserWith secret: String?) throws(UsageError) -> RefreshTokenLoader {
        do {
            return try RefreshTokenLoader(
                tokenURL: tokenURL, clientID: clientID, clientSecret: secret ?? "", scope: scope,
                authentication: secret == nil ? .publicClient : secretMethod, lifetimeWhenMissing: nil)
        } catch { throw UsageError("--token-url: \(error)") }
    }

    /// The store for a user's token, ready to keep it.
    ///
    /// - Parameter seed: The refresh token from the environment.
    func store(seed: String?) async throws -> SeededStore {
        guard let path = store else {
            Console.note(
                "race-lab: without --store the new refresh token is lost at the end, if the server replaces refresh tokens")
            return SeededStore(base: InMemoryTokenStore(), refreshToken: seed)
        }
        let store = SeededStore(base: FileTokenStore(path: path), refreshToken: seed)
        let isStored = try await store.prepare()
        if isStored, seed != nil { Console.note("race-lab: the refresh token in --store counts, not REFRESH_TOKEN") }
        return store
    }
}
