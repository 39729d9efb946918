package import AccessTokens
package import AccessTokensDispatch
package import Dispatch

/// The articles' third and last stage: everything happens on one serial queue.
///
/// Right: callable from any thread; one load however many callers; every handler is called in the order of the
/// calls, on the queue, never on the caller's stack; with an injected queue, `queue.sync {}` waits for earlier calls.
///
/// Still wrong; the numbers are repeated in the code:
/// 1. If it is released during a load, no handler is ever called.
/// 2. A loader that never answers blocks every later caller.
/// 3. A loader that answers twice overwrites the token with its second answer.
/// 4. A call can't be cancelled; there is no time limit, and no way to report that the server refused the token. (The sign-out
///    was added for the gallery.)
/// 5. A sign-out during a load is undone by the load's result.
/// 6. A token is valid at the moment of the call, but perhaps not when it is used.
/// 7. Every hit pays a queue hop, and every caller waits at expiry although the token was good a moment before.
///
/// `@unchecked Sendable`: `token` and `pendingHandlers` are accessed only on the queue, which must be serial; the compiler can't
/// check isolation by a `DispatchQueue`.
package final class ThreadSafeTokenService: @unchecked Sendable {
    /// Called with the result of a call.
    package typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void
    typealias Enqueue = @Sendable (_ work: @escaping @Sendable () -> Void) -> Void

    private let loader: any AccessTokenLoader
    private let enqueue: Enqueue
    private var token: KeptToken
    private var pendingHandlers: [Handler] = []

    /// Creates a service without a token.
    ///
    /// - Parameters:
    ///   - loader: The source of new tokens; it may answer on any thread.
    ///   - queue: Where everything happens and handlers are called; a serial one.
    ///   - clock: The clock by which the token's validity is judged.
    package convenience init(
        loader: some AccessTokenLoader, queue: DispatchQueue = .init(label: "AccessToken"),
        clock: some Clock<Duration> = ContinuousClock()
    ) {
        self.init(loader: loader, clock: clock) { work in queue.async(execute: work) }
    }

    /// Creates a service whose queue is anything that runs one block after the other, later.
    init(loader: some AccessTokenLoader, clock: some Clock<Duration>, enqueue: @escaping Enqueue) {
        self.loader = loader
        self.enqueue = enqueue
        token = KeptToken(clock: clock)
    }

    /// Passes the cached token, or that of the load that all callers share, on the queue.
    package func retrieveToken(then handler: @escaping Handler) {
        // 1: weak, here and below. 7: even if there is a token.
        enqueue { [weak self] in self?.retrieve(handler) }
    }

    /// Forgets the token: the sign-out that readers of the articles would write, since the articles have none.
    package func signOut() {
        // 5: a load that is under way isn't notified.
        enqueue { [weak self] in self?.token.keep(nil) }
    }

    private func retrieve(_ handler: @escaping Handler) {
        // 6: no leeway. 7: no refresh ahead of expiry. 4: no way to report that the server refuses it.
        if let token = token.valid { return handler(.success(token)) }
        pendingHandlers.append(handler)
        // 2: as long as a handler waits, no other load starts.
        guard pendingHandlers.count == 1 else { return }
        loader.load { [weak self, enqueue] result in
            enqueue { self?.handle(result) }
        }
    }

    private func handle(_ result: Result<AccessToken, any Error>) {
        // 3: the first answer or a later one.
        token.keep(try? result.get())
        let handlers = pendingHandlers
        pendingHandlers = []
        for handler in handlers { handler(result) }
    }
}
