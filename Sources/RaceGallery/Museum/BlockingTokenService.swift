import AccessTokens
import Interleavings
import TokenServiceConcurrency

/// Museum 28: waiting by blocking a thread of the cooperative pool: exhaustion.
///
/// Old code wants a token without `await`, so this starts a task and blocks its thread until that has ended. On a pool of
/// two threads one caller is fine: the other thread loads. Two callers at once hold both threads, each for a task that
/// will have its turn when a thread is free.
///
/// Shipped: okta-mobile-swift PR#272; MSAL common PR#911: 64 threads. Sits: in `wait()`: the pool is as wide as the
/// machine has cores, and grows for nobody.
final class BlockingTokenService: Sendable {
    private let loader: any TokenLoader
    private let executor: any TaskExecutor
    private let token: Lock<KeptToken>

    init(loader: some TokenLoader, clock: some Clock<Duration>, executor: any TaskExecutor) {
        self.loader = loader
        self.executor = executor
        token = Lock(KeptToken(clock: clock))
    }

    func retrieveToken() throws -> AccessToken? {
        if let token = token.withLock({ $0.valid }) { return token }
        let isLoaded = InterleavedSemaphore("loaded")
        Task(executorPreference: executor) {
            let loaded = try? await self.loader.loadToken(replacing: nil)
            self.token.withLock { $0.keep(loaded) }
            isLoaded.signal()
        }
        // The thread waits, and with it all that could have run there.
        isLoaded.wait()
        return token.withLock { $0.valid }
    }
}
