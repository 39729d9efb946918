import AccessTokens
import AccessTokensDPoP
import AccessTokensHTTP
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// Tokens and the key that they are bound to.
struct BindingTests {
    @Test func `a stored token keeps its key's thumbprint, and one written by an older version has none`() throws {
        let token = AccessToken("a", tokenType: "DPoP", refreshToken: "r", keyThumbprint: "t")
        let stored = StoredToken(token, received: Date(timeIntervalSince1970: 0))
        #expect(try StoredToken(serialized: stored.serialized()).token == token)
        let plain = StoredToken(AccessToken("a"), received: Date(timeIntervalSince1970: 0))
        #expect(try !String(decoding: plain.serialized(), as: UTF8.self).contains("keyThumbprint"))
        #expect(AccessToken("a", keyThumbprint: "t") != AccessToken("a", keyThumbprint: "u"))
        #expect(!texts(token).contains("\"t\""))
    }

    func service(_ key: DPoPKey?, _ server: NonceServer, _ store: InMemoryTokenStore, secret: String? = nil) throws
        -> TokenService
    {
        let client = try OAuthClient.test(
            key, server, authentication: secret.map { .clientSecretBasic($0) } ?? .publicClient)
        return TokenService(store: store, environment: .init(clock: ManualClock()), loader: try RefreshTokenLoader(client))
    }

    func stored(_ key: DPoPKey) -> InMemoryTokenStore {
        InMemoryTokenStore(
            StoredToken(
                AccessToken(
                    "kept", tokenType: "DPoP", lifetime: .seconds(3600), refreshToken: "r0", keyThumbprint: key.keyThumbprint),
                received: Date()))
    }

    @Test func `a stored token bound to the service's key is handed out`() async throws {
        let server = NonceServer(), key = try DPoPKey.test()
        #expect(try await service(key, server, stored(key)).retrieveToken().value == "kept")
        #expect(server.facts.requests.isEmpty)
    }

    @Test func `a stored token of another key is not handed out, nothing is sent, and the user is asked to sign in`() async throws
    {
        for key in [try DPoPKey.test(2), nil] {
            let server = NonceServer(), store = stored(try .test(1))
            let service = try service(key, server, store)
            let error = await #expect(throws: TokenServiceError.self) { try await service.retrieveToken() }
            #expect(error?.remedy == .signIn && server.facts.requests.isEmpty)
            #expect(
                (error?.underlying as? OAuthError)?.description
                    == "The refresh token is bound to a key other than the client's: sign in again. Nothing was sent.")
            // The grant is kept so that it can be revoked.
            #expect(await service.reset().discarded.map(\.refreshToken) == ["r0"] && store.contents == nil)
        }
    }

    // RFC 9449 §5: the refresh token of a confidential client is bound to its credentials.
    @Test func `a confidential client refreshes a token bound to another key`() async throws {
        let server = NonceServer(), key = try DPoPKey.test(2), store = stored(try .test(1))
        let token = try await service(key, server, store, secret: "s").retrieveToken()
        #expect(token.value == "abc" && token.keyThumbprint == key.keyThumbprint && server.facts.spent == ["r0"])
        #expect(store.contents?.token.keyThumbprint == key.keyThumbprint)
    }

    @Test func `the token of a refresh that runs when the key changes isn't handed out by the next key's service`() async throws {
        let (arrived, arrive) = AsyncStream.makeStream(of: Void.self)
        let gate = SingleResult<Void>()
        let server = NonceServer { if $0 == 2 { arrive.yield(); try await gate.value() } }
        let store = stored(try .test(1))
        let before = try service(.test(1), server, store), after = try service(.test(2), server, store)
        let kept = try await before.retrieveToken()
        await before.invalidate(kept)
        let flight = Task { try await before.retrieveToken() }
        for await _ in arrived { break }
        // The program has created a new key; the old service still writes to the same store.
        gate.complete(with: .success(()))
        _ = try await flight.value
        #expect(server.facts.spent == ["r0"])
        let error = await #expect(throws: TokenServiceError.self) { try await after.retrieveToken() }
        #expect(error?.remedy == .signIn && server.facts.spent == ["r0"])
    }

    /// A program's own `TokenProof`, whose key changes.
    final class ChangingProof: TokenProof {
        let keys: [DPoPKey]
        init(_ keys: [DPoPKey]) { self.keys = keys }
        let hasChanged = Lock(false)
        var key: DPoPKey { hasChanged.withLock { keys[$0 ? 1 : 0] } }
        var keyThumbprint: String { key.keyThumbprint }

        @concurrent func proof(method: String, url: URL, accessToken: String?, nonce: String?) async throws -> RequestProof {
            try await key.proof(method: method, url: url, accessToken: accessToken, nonce: nonce)
        }

        func nonce(in headers: [String: String], from url: URL) throws -> String? { nil }
    }

    @Test func `a token is bound to the key of its request, also if the key changes before the answer`() async throws {
        let keys = [try DPoPKey.test(1), try .test(2)], proof = ChangingProof(keys)
        let server = NonceServer(script: [.bound(#""expires_in":60"#)]) { _ in proof.hasChanged.withLock { $0 = true } }
        let token = try await OAuthClient.test(proof, server).token(for: .refreshToken("r0")).token
        #expect(token.keyThumbprint == keys[0].keyThumbprint)
    }
}
