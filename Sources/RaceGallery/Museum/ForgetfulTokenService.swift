import AccessTokens
import AccessTokensDispatch
import Interleavings

/// Museum 18: callbacks are dropped when the service is released.
///
/// Everything happens on one queue, and every block holds the service weakly, to avoid a cycle. A caller asks, its load is
/// under way; the screen that owns the service goes; the answer comes, finds no service, and the handlers that waited have
/// gone with it, uncalled. The caller waits for ever.
///
/// Shipped: the article; Monstra [R]. Sits: in each `[weak self]`, where `self` is what the caller waits for.
///
/// `@unchecked Sendable`: `token` and `handlers` are touched on `queue` only, which is serial.
final class ForgetfulTokenService: @unchecked Sendable {
    typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    private let loader: any AccessTokenLoader
    private let queue: VirtualQueue
    private var token: KeptToken
    private var handlers: [Handler] = []

    init(loader: some AccessTokenLoader, queue: VirtualQueue, clock: some Clock<Duration>) {
        self.loader = loader
        self.queue = queue
        token = KeptToken(clock: clock)
    }

    func retrieveToken(then handler: @escaping Handler) {
        queue.async { [weak self] in self?.retrieve(handler) }
    }

    private func retrieve(_ handler: @escaping Handler) {
        if let token = token.valid { return handler(.success(token)) }
        handlers.append(handler)
        guard handlers.count == 1 else { return }
        loader.load { [weak self, queue] result in
            // The race: is anybody left when this comes?
            queue.async { self?.finish(result) }
        }
    }

    private func finish(_ result: Result<AccessToken, any Error>) {
        token.keep(try? result.get())
        let answered = handlers
        handlers = []
        for handler in answered { handler(result) }
    }
}
