import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Interleavings

/// Holds one lock around everything, its callers' handlers included.
///
/// The app's model has a lock too. The load's answer comes on one thread: it takes the service's lock and calls a handler, which
/// needs the model's lock. Another thread changes the model, holds the model's lock and asks for a token, which needs the
/// service's lock. Each holds the lock that the other waits for.
///
/// The bug sits in `finish`, where foreign code runs with the lock held.
///
/// `@unchecked Sendable`: `token` and `handlers` are accessed only under `lock`.
final class UnderLockService: @unchecked Sendable {
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
            // Foreign code, with the lock held.
            for handler in handlers { handler(result) }
            handlers = []
        }
    }
}

extension Exhibit {
    static let handlersUnderLock = Exhibit(
        27, "Delegates or handlers run under the lock: deadlock", source: "GTMAppAuth [S]; Alamofire PR#3322",
        strategy: .exhaustive(preemptions: 2), granularity: .accesses,
        broken: { simulation in
            let loader = simulation.callbackLoader(of: simulation.server())
            let service = UnderLockService(loader: loader, clock: simulation.seams.clock)
            try await aModelWithALock(simulation) { service.retrieveToken(then: $0) }
        },
        mended: { simulation in
            let loader = simulation.callbackLoader(of: simulation.server()).tokenLoader
            let queue = simulation.serialQueue("queue")
            let service = AccessTokenService(service: simulation.service(loader: loader)) { queue.async($0) }
            try await aModelWithALock(simulation) { service.retrieveToken(then: $0) }
        })

    /// A handler changes a model; another thread changes the model, too, and needs a token for that.
    private static func aModelWithALock(
        _ simulation: Simulation, _ retrieve: @escaping @Sendable (@escaping AccessTokenService.Handler) -> Void
    ) async throws {
        let model = InterleavedLock("model")
        simulation.spawn("screen 1") {
            simulation.log("asks for a token")
            retrieve { _ in model.withLock { simulation.log("the handler changes the model") } }
        }
        simulation.spawn("screen 2") {
            try await simulation.clock.sleep(for: .seconds(1))
            model.withLock {
                simulation.log("changes the model, and asks for a token")
                retrieve { _ in simulation.log("the second handler is called") }
            }
        }
        try await simulation.settle()
    }
}
