import AccessTokens
import AccessTokensFiles
import Foundation
import Testing

/// Guarantee 45, with processes: a tool that exits normally loses no refresh token that the server has rotated.
@Suite(.timeLimit(.minutes(10)))
struct ToolTests {
    /// Runs a tool that finds a token that is about to expire; returns the grant in its store and the one issued last.
    private func run(_ kind: String) async throws -> (stored: Int, issued: Int?) {
        let place = try Place()
        let store = FileTokenStore(path: place.path)
        let token = AccessToken("access-0", lifetime: .seconds(8), refreshToken: "0")
        try await store.save(StoredToken(token, received: Date(timeIntervalSinceNow: -6.3)))
        let rotation = Rotation(in: place)
        _ = try await rotation.visit(kind)
        let stored = try #require(try await store.load()?.token.refreshToken.flatMap { Int($0) })
        return (stored, try rotation.exchanges().last?.issued)
    }

    @Test func `45: a tool that ends after its last call has lost no refresh token`() async throws {
        let (stored, issued) = try await run("ends")
        #expect(stored == issued ?? 0)
    }

    @Test func `45: a tool that drains its service ends after the refresh that it has started, and keeps the token`() async throws
    {
        let (stored, issued) = try await run("drains")
        #expect(issued == 1 && stored == 1)
    }
}
