import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

extension Exhibit {
    static let eighteen = Exhibit(
        18, "Callbacks are dropped when the service is released", source: "the article; Monstra [R]",
        broken: { simulation in
            let loader = simulation.narrated(callbacks: simulation.server().callbackLoader)
            let queue = simulation.serialQueue("queue")
            try await anOwnerWhoLeaves(simulation) {
                let service = ForgetfulTokenService(loader: loader, queue: queue, clock: simulation.clock)
                return { service.retrieveToken(then: $0) }
            }
        },
        mended: { simulation in
            let loader = CallbackTokenLoader(simulation.server().callbackLoader)
            let queue = simulation.serialQueue("queue")
            try await anOwnerWhoLeaves(simulation) {
                let service = AccessTokenService(service: simulation.service(loader: loader)) { queue.async($0) }
                return { service.retrieveToken(then: $0) }
            }
        })

    private typealias Ask = @Sendable (@escaping AccessTokenService.Handler) -> Void

    /// The owner goes in the second in which the answer comes.
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
