import AccessTokens
import AccessTokensKeys
import AccessTokensOAuth
import Foundation
import Testing

/// Many accounts, each with its own one-time refresh token, with a limit that keeps only a fifth of their services.
///
/// Tokens really expire here: the test waits twice for their lifetime.
extension RealServerTests {
    @Test func `fifty accounts refresh their own tokens through two expiries, and one's sign-out leaves the others`()
        async throws
    {
        try #require(server.accounts.count >= 50, "start-glewlwyd makes 50 unless told otherwise")
        let names = server.accounts.map(\.name)
        let stores = InMemoryTokenStores<String>(), loader = try server.refreshLoader()
        let services = TokenServices<String>(keepingIdle: names.count / 5, stores: stores, loader: { _ in loader })
        let signedIn = try await server.refreshesIssued()
        var tokens = try await signIn(to: services)
        #expect(try await server.refreshesIssued() == signedIn, "nothing has expired")

        for _ in 1...2 {
            let (before, next) = try await askAfterExpiry(services, for: names)
            #expect(try await server.refreshesIssued() - before == names.count, "one for each account")
            #expect(Set(next.values.map(\.value)).isDisjoint(with: tokens.values.map(\.value)))
            tokens = next
        }
        #expect(services.counts.busy == 0 && services.counts.idle <= names.count / 5)

        let signedOut = try #require(names.randomElement())
        let change = try #require(await services.reset { $0 == signedOut }.changes[signedOut])
        let grant = try #require(change.discarded.first)
        #expect(grant.refreshToken == tokens[signedOut]?.refreshToken)
        try await server.endGrant(of: grant)
        await #expect(throws: TokenServiceError.self) { try await services[signedOut].retrieveToken() }
        #expect(try await !server.isGrantActive(of: grant))

        let others = names.filter { $0 != signedOut }
        #expect(try await Set(stores.storedKeys()) == Set(others))
        for name in others { #expect(try await server.isGrantActive(of: try #require(tokens[name])), "\(name)") }
        let (before, _) = try await askAfterExpiry(services, for: others)
        #expect(try await server.refreshesIssued() - before == others.count)
    }

    /// All accounts sign in; each account's callers get its token, which the server attributes to that account.
    private func signIn(to services: TokenServices<String>) async throws -> [String: AccessToken] {
        try await inLanes(server.accounts) { account in
            let token = try await server.signIn(account)
            await services[account.name].replace(with: token)
            #expect(try await services[account.name].retrieveToken() == token)
            #expect(try await server.introspect(token.value, for: server.app).username == account.name)
            return (account.name, token)
        }
    }

    /// Calls `body` for each element, five at a time: with more requests at once, Glewlwyd occasionally sends an empty answer
    /// with status 200, which loses that account's session.
    private func inLanes<Element: Sendable>(
        _ elements: [Element], _ body: @escaping @Sendable (Element) async throws -> (String, AccessToken)
    ) async throws -> [String: AccessToken] {
        try await withThrowingTaskGroup(of: [(String, AccessToken)].self) { group in
            for lane in 0..<5 {
                group.addTask {
                    var results: [(String, AccessToken)] = []
                    for index in stride(from: lane, to: elements.count, by: 5) { results.append(try await body(elements[index])) }
                    return results
                }
            }
            return try await group.reduce(into: [:]) { all, some in for (name, token) in some { all[name] = token } }
        }
    }

    /// Waits until all tokens have expired; then each account asks twice at the same time.
    ///
    /// - Returns: How many tokens the server had issued for refresh tokens before that, and the accounts' new tokens, each of
    ///   which the server attributes to its account.
    private func askAfterExpiry(
        _ services: TokenServices<String>, for names: [String]
    ) async throws -> (issuedBefore: Int, tokens: [String: AccessToken]) {
        // The server counts in whole seconds.
        try await Task.sleep(for: server.lifetime + .seconds(1))
        let before = try await server.refreshesIssued()
        let tokens = try await inLanes(names) { name in
            async let other = services[name].retrieveToken()
            let token = try await services[name].retrieveToken()
            #expect(try await other == token, "\(name): both callers get the same token")
            #expect(try await server.introspect(token.value, for: server.app).username == name)
            return (name, token)
        }
        return (before, tokens)
    }
}
