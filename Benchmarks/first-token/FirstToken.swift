import AccessTokens

/// The smallest program that uses the core, to measure its start-up.
@main enum FirstToken {
    static func main() async throws {
        let tokens = TokenService { _ in AccessToken("first") }
        _ = try await tokens.retrieveToken()
    }
}
