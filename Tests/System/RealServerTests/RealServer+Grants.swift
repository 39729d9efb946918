import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing

extension RealServer {
    /// Signs a user in with a password (RFC 6749 §4.3), which no loader of ours does; the token has a one-time refresh token.
    ///
    /// - Parameter user: The user to sign in; ``user`` by default.
    func signIn(_ user: User? = nil) async throws -> AccessToken {
        let user = user ?? self.user
        struct Answer: Decodable {
            let access_token: String
            let refresh_token: String
        }
        let form = [
            URLQueryItem(name: "grant_type", value: "password"), URLQueryItem(name: "username", value: user.name),
            URLQueryItem(name: "password", value: user.password), URLQueryItem(name: "scope", value: scope),
        ]
        let answer = try JSONDecoder().decode(Answer.self, from: try await post(form, to: tokenURL, by: app))
        return AccessToken(answer.access_token, lifetime: lifetime, scope: scope, refreshToken: answer.refresh_token)
    }

    /// Returns the loader that continues with the token from ``signIn()``.
    func refreshLoader(over transport: any TokenTransport = URLSessionTransport()) throws -> RefreshTokenLoader {
        try RefreshTokenLoader(tokenURL: tokenURL, clientID: app.id, clientSecret: app.secret, transport: transport)
    }

    /// Tells the server that such a grant is no longer needed.
    func endGrant(of token: AccessToken) async throws {
        try await OAuthClient(id: app.id, authentication: .clientSecretBasic(app.secret), tokenURL: tokenURL)
            .revoke(token, at: revocationURL)
    }

    /// Whether the server would still accept the token's refresh token.
    func isGrantActive(of token: AccessToken) async throws -> Bool {
        try await isActive(try #require(token.refreshToken), for: app)
    }
}

extension RealServerTests {
    /// Callers of a service with refresh tokens; the wall clock, which gives a stored token's age, moves with the manual clock.
    func refreshingCrowd(
        store: any TokenStore, over transport: any TokenTransport = URLSessionTransport()
    ) throws -> Crowd {
        Crowd(
            loader: try server.refreshLoader(over: transport), store: store, clock: clock,
            wallClock: { [clock] in Date(timeIntervalSince1970: clock.now.offset / .seconds(1)) })
    }
}
