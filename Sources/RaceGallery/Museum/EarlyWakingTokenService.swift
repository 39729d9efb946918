import AccessTokens

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Museum 17: a waiter is woken before the value is published.
///
/// The load ends: those who wait are answered at once, so that the disk does not delay them; then the token is saved, and
/// then it is kept. Meanwhile one of those who were answered asks again, finds no token and nobody waiting, and starts a
/// second load, which revokes the token that it has just been given.
///
/// Shipped: google-auth-java#692. Sits: in `finish`, between the resumes and the assignment, where it awaits.
actor EarlyWakingTokenService {
    private let loader: any TokenLoader
    private let store: any TokenStore
    private let executor: any TaskExecutor
    private var token: KeptToken
    private var waiters: [CheckedContinuation<AccessToken, any Error>] = []

    init(loader: some TokenLoader, store: some TokenStore, clock: some Clock<Duration>, executor: any TaskExecutor) {
        self.loader = loader
        self.store = store
        self.executor = executor
        token = KeptToken(clock: clock)
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        return try await withCheckedThrowingContinuation { continuation in
            waiters.append(continuation)
            guard waiters.count == 1 else { return }
            let load = Task(executorPreference: executor) { [loader] in try await loader.loadToken(replacing: nil) }
            Task(executorPreference: executor) { await self.finish(await load.result) }
        }
    }

    private func finish(_ result: Result<AccessToken, any Error>) async {
        let answered = waiters
        waiters = []
        for waiter in answered { waiter.resume(with: result) }
        guard let loaded = try? result.get() else { return }
        // The race: who was answered may ask again before this is done.
        try? await store.save(StoredToken(loaded, received: .distantPast))
        token.keep(loaded)
    }
}
