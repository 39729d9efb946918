import AccessTokens
import AccessTokensTesting
import Interleavings

extension Exhibit {
    static let seventeen = Exhibit(
        17, "A waiter is woken before the value is published", source: "google-auth-java#692", strategy: .pct(),
        broken: { simulation in
            let server = simulation.server()
            let service = EarlyWakingTokenService(
                loader: simulation.narrated(server.loader), store: InMemoryTokenStore(),
                clock: simulation.clock, executor: simulation.taskExecutor)
            try await askTwice(simulation, loads: { server.loadsStarted }) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server()
            let service = simulation.service(store: InMemoryTokenStore(), loader: server.loader)
            try await askTwice(simulation, loads: { server.loadsStarted }) { try await service.retrieveToken() }
        })

    /// Whoever gets a token asks again, for the next request.
    private static func askTwice(
        _ simulation: Simulation, loads: @escaping @Sendable () -> Int,
        _ retrieve: @escaping @Sendable () async throws -> AccessToken
    ) async throws {
        for name in ["caller 1", "caller 2"] {
            simulation.spawn(name) {
                for request in 1...2 { try await simulation.ask(retrieve, saying: "asks for request \(request)") }
            }
        }
        try await simulation.settle()
        try simulation.require(loads() == 1, "who was given the token finds it on asking again: one load, not \(loads())")
    }
}
