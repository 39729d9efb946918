import AccessTokens
import AccessTokensSharedFiles
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

// The Swift blocks of `SeveralProcesses`, unchanged, and run.

private struct RecordVault {
    func seal(_ record: Data) throws -> Data { Data(record.reversed()) }
    func open(_ bytes: Data) throws -> Data { Data(bytes.reversed()) }
}

@Suite(.inRealTime) struct `The guide to several processes` {
    private let server = SimulatedAuthorizationServer(
        clock: ManualClock(), keepsOneTokenValid: false, rotatesRefreshTokens: true)

    @Test func `shows the way of sharing that loses the session`() async throws {
        let store = ScriptedStore(StoredToken(expired(), received: Date()))
        let app = TokenService(store: store, loader: server.loader)
        let tool = TokenService(store: store, loader: server.loader)
        _ = app
        _ = tool
        // Both have read the same refresh token before either has saved.
        let grant = try #require(store.contents)
        _ = try await server.loader.loadToken(replacing: grant)
        await #expect(throws: ScriptedFailure(.signIn)) { try await server.loader.loadToken(replacing: grant) }
        #expect(server.reuseDetected == 1)
    }

    private func expired() -> AccessToken {
        AccessToken("old", lifetime: .zero, refreshToken: server.signIn().refreshToken)
    }

    @Test func `shares a grant in a file`() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "grant-\(UUID().uuidString).json").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = SharedFileTokenStore(path: path)
        let tokens = TokenService(sharedStore: store, loader: server.loader)
        await tokens.replace(with: server.signIn())
        // A busy machine may take longer than a sign-in waits for its store; the other service's clock stands still.
        while try await store.load() == nil { await tokens.replace(with: server.signIn()) }
        let other = TokenService(
            sharedStore: SharedFileTokenStore(path: path), environment: .init(clock: ManualClock()), loader: server.loader)
        // The token of one of the sign-ins; the last may not have reached the file yet.
        #expect(try await other.retrieveToken().value.hasPrefix("access-"))
        #expect(server.loadsStarted == 0)
    }

    @Test func `looks for a sign-out elsewhere`() async throws {
        let store = SimulatedSharedStore()
        let checked = TokenService(
            sharedStore: store,
            sharing: TokenSharing(checkEvery: .seconds(30)),
            loader: server.loader)
        await checked.replace(with: server.signIn())
        #expect(try await checked.retrieveToken().value == "access-1")
    }

    @Test func `states the server's grace period`() async throws {
        let store = SimulatedSharedStore()
        let sharing = TokenSharing(
            transportLimit: .seconds(5), serverGrace: .seconds(30))
        let graced = TokenService(
            sharedStore: store, sharing: sharing, loader: server.loader)
        await graced.replace(with: server.signIn())
        #expect(try await graced.retrieveToken().value == "access-1")
    }

    @Test func `seals the record`() async throws {
        let vault = RecordVault(), store = SimulatedSharedStore()
        let sharing = TokenSharing(
            seal: { try vault.seal($0) }, open: { try vault.open($0) })
        let sealed = TokenService(
            sharedStore: store, sharing: sharing, loader: server.loader)
        await sealed.replace(with: server.signIn())
        #expect(try await sealed.retrieveToken().value == "access-1")
    }
}
