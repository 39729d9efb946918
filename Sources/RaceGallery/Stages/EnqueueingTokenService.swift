package import AccessTokens
package import AccessTokensDispatch
import Interleavings

/// The articles' second stage: handlers wait in an array for one load.
///
/// Right: one load however many callers; answers in the order of the calls; a failure reaches all waiting
/// callers and is not kept.
///
/// Wrong:
/// - **it is not thread-safe**: two threads corrupt the array, and both may find their handler alone in it. The behaviour is
///   undefined, so it may run only on one thread, its loader's answers included;
/// - a cached token is handed over on the caller's own stack;
/// - and everything that is wrong with ``ThreadSafeTokenService``, which only adds the queue.
package final class EnqueueingTokenService {
    /// Called with the result of a call.
    package typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    private let loader: any AccessTokenLoader
    @Interleaved private var token: KeptToken
    @Interleaved("handlers") private var pendingHandlers: [Handler] = []

    /// Creates a service without a token.
    ///
    /// - Parameters:
    ///   - loader: The source of new tokens; it must answer on the thread on which the service is used.
    ///   - clock: The clock by which the token's validity is judged.
    package init(loader: some AccessTokenLoader, clock: some Clock<Duration> = ContinuousClock()) {
        self.loader = loader
        _token = Interleaved(wrappedValue: KeptToken(clock: clock), "token")
    }

    /// Passes the cached token at once, or that of the load that all callers share.
    package func retrieveToken(then handler: @escaping Handler) {
        if let token = token.valid { return handler(.success(token)) }
        pendingHandlers.append(handler)
        guard pendingHandlers.count == 1 else { return }
        let service = UncheckedWeakBox(self)
        // Captured weakly: if the service is released, its handlers are released with it, uncalled.
        loader.load { service.object?.handle($0) }
    }

    /// Forgets the token: the sign-out that readers of the articles would write, since the articles have none.
    ///
    /// A load that is under way will undo it.
    package func signOut() {
        token.keep(nil)
    }

    private func handle(_ result: Result<AccessToken, any Error>) {
        token.keep(try? result.get())
        // Empty the array first, so that a handler that asks again finds a consistent state.
        let handlers = pendingHandlers
        pendingHandlers = []
        for handler in handlers { handler(result) }
    }
}
