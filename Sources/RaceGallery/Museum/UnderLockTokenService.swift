import AccessTokens
import AccessTokensDispatch
import Interleavings

/// Museum 27: handlers run under the lock: deadlock.
///
/// The service is safe on any thread: a lock is around everything, its callers' handlers included. The app's model has a
/// lock too. The load's answer comes on one thread: it takes the service's lock and calls a handler, which wants the
/// model's. Another thread changes the model, holds its lock, asks for a token and wants the service's. Each has what the
/// other one waits for.
///
/// Shipped: GTMAppAuth [S], Alamofire PR#3322. Sits: in `finish`, where foreign code runs with the lock held.
///
/// `@unchecked Sendable`: `token` and `handlers` are touched under `lock` only.
final class UnderLockTokenService: @unchecked Sendable {
    typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    private let lock = InterleavedLock("service")
    private let loader: any AccessTokenLoader
    private var token: KeptToken
    private var handlers: [Handler] = []

    init(loader: some AccessTokenLoader, clock: some Clock<Duration>) {
        self.loader = loader
        token = KeptToken(clock: clock)
    }

    func retrieveToken(then handler: @escaping Handler) {
        lock.withLock {
            if let token = token.valid { return handler(.success(token)) }
            handlers.append(handler)
            guard handlers.count == 1 else { return }
            loader.load { self.finish($0) }
        }
    }

    private func finish(_ result: Result<AccessToken, any Error>) {
        lock.withLock {
            token.keep(try? result.get())
            // Whatever a handler does, it does with the lock.
            for handler in handlers { handler(result) }
            handlers = []
        }
    }
}
