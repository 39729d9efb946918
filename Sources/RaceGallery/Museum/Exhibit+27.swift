import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Interleavings

extension Exhibit {
    static let twentySeven = Exhibit(
        27, "Delegates or handlers run under the lock: deadlock", source: "GTMAppAuth [S]; Alamofire PR#3322",
        strategy: .exhaustive(preemptions: 2), granularity: .accesses,
        broken: { simulation in
            let loader = simulation.narrated(callbacks: simulation.server().callbackLoader)
            let service = UnderLockTokenService(loader: loader, clock: simulation.clock)
            try await aModelWithALock(simulation) { service.retrieveToken(then: $0) }
        },
        mended: { simulation in
            let loader = CallbackTokenLoader(simulation.server().callbackLoader)
            let queue = simulation.serialQueue("queue")
            let service = AccessTokenService(service: simulation.service(loader: loader)) { queue.async($0) }
            try await aModelWithALock(simulation) { service.retrieveToken(then: $0) }
        })

    /// Handlers change a model, and whoever changes the model may ask for a token.
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
