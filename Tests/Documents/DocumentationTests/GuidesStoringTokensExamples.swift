import AccessTokens
import AccessTokensFiles
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

// The Swift blocks of `StoringTokens` about the stores of this package, unchanged, and run.

private struct TooLate {
    let tokens: TokenService
    let vault: Vault

    func tokenForRequest() async throws -> AccessToken {
        let token = try await tokens.retrieveToken()
        try await vault.write(token)  // too late: the other callers have it
        return token
    }
}

@Suite(.inRealTime) struct `The guide to stores` {
    private let server = SimulatedAuthorizationServer(clock: ManualClock(), rotatesRefreshTokens: true)

    @Test func `shows a save that a sign-out cannot overtake`() async throws {
        let vault = Vault()
        let late = TooLate(tokens: TokenService(loader: server.loader), vault: vault)
        #expect(try await late.tokenForRequest().value == "access-1")
        _ = await late.tokens.reset()
        #expect(try await vault.read() != nil)  // signed out, and still there
    }

    @Test func `gives the store to the service`() async throws {
        let store = ScriptedStore()
        let tokens = TokenService(store: store, loader: server.loader)
        await tokens.replace(with: server.signIn())
        #expect(store.contents?.refreshToken == "refresh-1")  // saved
        _ = await tokens.reset()
        #expect(store.contents == nil)  // removed
    }

    @Test func `keeps a token in a file`() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "guide-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let tokens = TokenService(
            store: FileTokenStore(path: path),
            loader: server.loader)
        #expect(tokens.cachedToken == nil)

        // The clock stands still, since a busy machine may need more than the 5 s that a store has.
        func start() -> TokenService {
            TokenService(
                store: FileTokenStore(path: path), environment: .init(clock: ManualClock()), loader: server.loader)
        }
        await start().replace(with: server.signIn())
        #expect(try await start().retrieveToken().value == "access-1")
        #expect(server.loadsStarted == 0)
    }
}
