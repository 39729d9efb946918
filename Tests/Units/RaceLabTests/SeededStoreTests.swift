import AccessTokens
import Foundation
import Testing

@testable import race_lab

/// A store that is empty and takes nothing.
private struct FullStore: TokenStore {
    struct Failure: Error {}

    @concurrent func load() async -> StoredToken? { nil }
    @concurrent func save(_ token: StoredToken) async throws { throw Failure() }
    @concurrent func remove() async {}
}

@Suite struct `A seeded store` {
    private let newer = StoredToken(AccessToken("a", lifetime: .seconds(5), refreshToken: "newer"), received: Date())

    @Test func `a seeded store has an expired token with the refresh token, which it does not write down`() async throws {
        let base = InMemoryTokenStore()
        let token = try #require(try await SeededStore(base: base, refreshToken: "seed").load()).token
        #expect(token.refreshToken == "seed")
        #expect(token.lifetime == .zero)
        #expect(base.contents == nil)
    }

    @Test func `a seeded store is empty without a refresh token`() async throws {
        #expect(try await SeededStore(base: InMemoryTokenStore(), refreshToken: nil).load() == nil)
    }

    @Test func `a seeded store prefers what was stored before to the refresh token`() async throws {
        let store = SeededStore(base: InMemoryTokenStore(newer), refreshToken: "seed")
        #expect(try await store.load() == newer)
    }

    @Test func `a seeded store keeps what is saved in place of the refresh token`() async throws {
        let base = InMemoryTokenStore()
        let store = SeededStore(base: base, refreshToken: "seed")
        try await store.save(newer)
        #expect(try await store.load() == newer)
        #expect(base.contents == newer)
        try await store.remove()
        #expect(base.contents == nil)
    }

    @Test func `a seeded store with a token is ready, and leaves the token as it is`() async throws {
        let base = InMemoryTokenStore(newer)
        #expect(try await SeededStore(base: base, refreshToken: "seed").prepare())
        #expect(base.contents == newer)
    }

    @Test func `a seeded store with a refresh token is ready, and still empty`() async throws {
        let base = InMemoryTokenStore()
        #expect(try await !SeededStore(base: base, refreshToken: "seed").prepare())
        #expect(base.contents == nil)
    }

    @Test func `a seeded store without any refresh token is not ready, and says what is missing`() async throws {
        let empty = SeededStore(base: InMemoryTokenStore(), refreshToken: nil)
        let nothing = await #expect(throws: UsageError.self) { try await empty.prepare() }
        #expect(nothing?.description.contains("export REFRESH_TOKEN") == true)
        let foreign = StoredToken(AccessToken("a", lifetime: .seconds(5)), received: Date())
        let other = SeededStore(base: InMemoryTokenStore(foreign), refreshToken: "seed")
        let wrong = await #expect(throws: UsageError.self) { try await other.prepare() }
        #expect(wrong?.description.contains("has no refresh token") == true)
    }

    @Test func `a seeded store is not ready where nothing can be written`() async throws {
        let store = SeededStore(base: FullStore(), refreshToken: "seed")
        await #expect(throws: FullStore.Failure.self) { try await store.prepare() }
    }
}
