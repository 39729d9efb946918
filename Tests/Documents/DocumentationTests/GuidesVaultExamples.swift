import AccessTokens
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

// The Swift blocks of `StoringTokens` about a store of one's own, unchanged, and run.

actor Vault {
    struct Locked: Error {}

    private var data: Data?
    private var isLocked = false

    func lock(_ isLocked: Bool) { self.isLocked = isLocked }

    func read() throws -> Data? {
        if isLocked { throw Locked() }
        return data
    }

    func write(_ data: Data?) throws {
        if isLocked { throw Locked() }
        self.data = data
    }

    func write(_ token: AccessToken) throws { try write(Data(token.value.utf8)) }
}

struct VaultTokenStore: TokenStore {
    let vault: Vault

    @concurrent func load() async throws -> StoredToken? {
        // Throws while the vault is locked.
        guard let data = try await vault.read() else { return nil }
        return try StoredToken(serialized: data)
    }

    @concurrent func save(_ token: StoredToken) async throws {
        try await vault.write(token.serialized())
    }

    @concurrent func remove() async throws {
        try await vault.write(nil)
    }
}

@Suite(.inRealTime) struct `The guide to stores of one's own` {
    private let server = SimulatedAuthorizationServer(clock: ManualClock(), rotatesRefreshTokens: true)

    @Test func `tells a locked vault from an empty one`() async throws {
        let vault = Vault()
        let store = VaultTokenStore(vault: vault)
        try await store.save(StoredToken(server.signIn(), received: Date()))
        let tokens = TokenService(store: store, loader: server.loader)
        await vault.lock(true)
        let error = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
        #expect(error?.code == .storeFailed && error?.retryAt != nil && server.loadsStarted == 0)
        await vault.lock(false)
        await tokens.retryNow()
        #expect(try await tokens.retrieveToken().value == "access-1")
        _ = await tokens.reset()
        #expect(try await store.load() == nil)
    }
}
