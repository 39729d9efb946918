import AccessTokens
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

// The Swift blocks of `StoringTokens` about an app and its extension that borrows its token, unchanged, and run.

private struct NotSignedIn: Error {}

func borrowing(from store: some TokenStore) -> TokenService {
    TokenService(isRepeatable: true) { _ in
        guard let stored = try await store.load() else {
            throw NotSignedIn()
        }
        let age = max(-stored.received.timeIntervalSinceNow, 0)
        let left = stored.token.lifetime.map { $0 - .seconds(age) }
        // No refresh token goes along: there is nothing to spend.
        return AccessToken(stored.token.value, lifetime: left)
    }
}

@Suite(.inRealTime) struct `The guide to sharing a session` {
    @Test(arguments: [(0, true), (3_000, true), (3_600, false), (-60, true)])
    func `lends a token to an extension while the token is valid`(age: Int, isUsable: Bool) async throws {
        let received = Date(timeIntervalSinceNow: -Double(age))
        let token = AccessToken("lent", lifetime: .seconds(3600), refreshToken: "refresh-1")
        let store = ScriptedStore(StoredToken(token, received: received))
        let tokens = borrowing(from: store)
        let lent = try? await tokens.retrieveToken()
        #expect((lent?.value == "lent") == isUsable)
        #expect(lent?.refreshToken == nil)
    }

    @Test func `tells an extension that no user is signed in`() async throws {
        let tokens = borrowing(from: ScriptedStore())
        let error = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
        #expect(error?.underlying is NotSignedIn)
    }
}
