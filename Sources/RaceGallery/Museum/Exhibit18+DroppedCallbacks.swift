import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// Does everything on one queue, and holds itself weakly in every block, to avoid a cycle.
///
/// A caller asks, and its load is under way. The screen that owns the service is closed. The answer arrives and finds no service:
/// the waiting handlers were released with it, uncalled.
///
/// The bug sits in each `[weak self]`, where `self` is what the caller waits for.
///
/// `@unchecked Sendable`: `token` and `handlers` are accessed only on the queue, which is serial.
final class ForgetfulCallbackService: @unchecked Sendable {
    typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void
    typealias Enqueue = @Sendable (_ block: @escaping @Sendable () -> Void) -> Void

    private let loader: any AccessTokenLoader
    private let enqueue: Enqueue
    private var token: KeptToken
    private var handlers: [Handler] = []

    init(loader: some AccessTokenLoader, enqueue: @escaping Enqueue, clock: some Clock<Duration>) {
        self.loader = loader
        self.enqueue = enqueue
        token = KeptToken(clock: clock)
    }

    func retrieveToken(then handler: @escaping Handler) {
        enqueue { [weak self] in self?.retrieve(handler) }
    }

    private func retrieve(_ handler: @escaping Handler) {
        if let token = token.valid { return handler(.success(token)) }
        handlers.append(handler)
        guard handlers.count == 1 else { return }
        loader.load { [weak self, enqueue] result in
            // The race: the service may have been released by now.
            enqueue { self?.finish(result) }
        }
    }

    private func finish(_ result: Result<AccessToken, any Error>) {
        token.keep(try? result.get())
        let answered = handlers
        handlers = []
        for handler in answered { handler(result) }
    }
}

extension Exhibit {
    static let droppedCallbacks = Exhibit(
        18, "Callbacks are dropped when the service is released", source: "the article; Monstra [R]",
        broken: { simulation in
            let loader = simulation.callbackLoader(of: simulation.server())
            let enqueue = simulation.seams.serialQueue("queue")
            try await anOwnerWhoLeaves(simulation) {
                let service = ForgetfulCallbackService(loader: loader, enqueue: enqueue, clock: simulation.seams.clock)
                return { service.retrieveToken(then: $0) }
            }
        },
        mended: { simulation in
            let loader = simulation.callbackLoader(of: simulation.server()).tokenLoader
            let enqueue = simulation.seams.serialQueue("queue")
            try await anOwnerWhoLeaves(simulation) {
                let service = AccessTokenService(service: simulation.service(loader: loader)) { enqueue($0) }
                return { service.retrieveToken(then: $0) }
            }
        })

    private typealias Ask = @Sendable (@escaping AccessTokenService.Handler) -> Void

    /// The owner releases the service in the same second in which the answer arrives.
    private static func anOwnerWhoLeaves(_ simulation: Simulation, _ makeService: () -> Ask) async throws {
        // The only reference to the service.
        let owned = Lock(Optional(makeService()))
        let waiting = Lock(0)
        simulation.spawn("caller") {
            guard let retrieve = owned.withLock({ $0 }) else { return simulation.log("finds no service") }
            simulation.log("asks for a token")
            waiting.withLock { $0 += 1 }
            retrieve { _ in
                simulation.log("calls the handler")
                waiting.withLock { $0 -= 1 }
            }
        }
        simulation.spawn("owner") {
            try await simulation.clock.sleep(for: .seconds(1))
            simulation.log("releases the service")
            owned.withLock { $0 = nil }
        }
        try await simulation.settle()
        try simulation.require(waiting.withLock { $0 } == 0, "a handler is called, also if its service was released")
    }
}
