import AccessTokens

/// The least that a program does with the core: its process is what the start-up is measured with.
@main enum FirstToken {
    static func main() async throws {
        let tokens = TokenService { _ in AccessToken("first") }
        _ = try await tokens.retrieveToken()
    }
}
