import AccessTokens
import AccessTokensFiles

/// An ordinary command-line tool: it gets a token, works, gets a token again and exits.
struct Tool: Sendable {
    let store: FileTokenStore
    let ledgerPath: String
    /// Whether its loader says that it may be repeated, so that a refresh begins in the background.
    let isRepeatable: Bool

    func run() async throws {
        let tokens = TokenService(store: store, isRepeatable: isRepeatable) { previous in
            var ledger = try Ledger(path: ledgerPath)
            guard let grant = previous?.refreshToken.flatMap({ Int($0) }), let next = try ledger.exchange(grant) else {
                throw Refused()
            }
            // The server has rotated the refresh token, and its answer is on its way.
            try await Task.sleep(for: .milliseconds(300))
            return AccessToken("access-\(next)", lifetime: .seconds(3600), refreshToken: "\(next)")
        }
        _ = try await tokens.retrieveToken()
        // Its work, after which the token is in its soft window.
        try await Task.sleep(for: .milliseconds(300))
        _ = try await tokens.retrieveToken()
        // The last request, which is answered sooner than the authorization server's.
        try await Task.sleep(for: .milliseconds(50))
        if isRepeatable { Rotator.say("\(await tokens.drain(within: .seconds(20)).isComplete)") }
    }

    struct Refused: Error {}
}
