import AccessTokens
import AccessTokensTesting
import Interleavings

extension Exhibit {
    static let twentyTwo = Exhibit(
        22, "Back-off arithmetic overflows and disables refresh", source: "aws-sdk-java-v2#6805 at failure 58",
        broken: { simulation in
            let server = simulation.server(latency: .zero)
            let service = OverflowingTokenService(
                loader: simulation.narrated(server.loader, isNumbered: false), clock: simulation.clock)
            try await anOutage(simulation, server) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server(latency: .zero)
            let service = simulation.service(loader: server.loader)
            try await anOutage(simulation, server) { try await service.retrieveToken() }
        })

    /// The server is away for a while; a worker needs a token every minute and a half; then the server is back.
    private static func anOutage(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping @Sendable () async throws -> AccessToken
    ) async throws {
        let attempts = simulation.choose("the attempts that the outage lasts", among: [1, 2, 4, 8, 60]) ?? 0
        server.isReachable = false
        let worker = simulation.spawn("worker") {
            for _ in 1...attempts {
                _ = try? await retrieve()
                try await simulation.clock.sleep(for: .seconds(90))
            }
            server.isReachable = true
            simulation.log("the server is back")
            try await simulation.ask(retrieve)
        }
        let isServed = (try? await worker.value) != nil
        try simulation.require(isServed, "a minute after an outage, however long, there is a token")
    }
}
