import AccessTokens
import Foundation

@MainActor final class ProfileScreen {
    private(set) var name = ""
    private let tokens: TokenService

    init(tokens: TokenService) {
        self.tokens = tokens
    }

    func appear() async {
        do {
            let token = try await tokens.retrieveToken()
            name = "user of \(token.value)"
        } catch {
            name = "unknown"
        }
    }

    func rename(_ name: String) async {
        guard let token = try? await tokens.retrieveToken() else { return }
        self.name = "\(name) of \(token.value)"
    }

    func signOut() async {
        _ = await tokens.reset()
        name = ""
    }
}
