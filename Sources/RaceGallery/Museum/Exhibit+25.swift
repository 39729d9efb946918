import AccessTokens
import AccessTokensTesting
import Interleavings

extension Exhibit {
    static let twentyFive = Exhibit(
        25, "Token and expiry are read at different moments", source: "aws-sdk-go#3448",
        strategy: .exhaustive(preemptions: 2), granularity: .accesses,
        broken: { simulation in
            let server = simulation.server(keepsOneTokenValid: false)
            let service = TornTokenService(
                loader: simulation.narrated(server.loader), clock: simulation.clock)
            try await callersAtExpiry(simulation, server) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server(keepsOneTokenValid: false)
            let service = simulation.service(loader: server.loader)
            try await callersAtExpiry(simulation, server) { try await service.retrieveToken() }
        })

    /// The first token has expired when two callers ask, the second when the first one's answer comes.
    private static func callersAtExpiry(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping @Sendable () async throws -> AccessToken
    ) async throws {
        _ = try await retrieve()
        try await simulation.clock.sleep(for: .seconds(3600))
        for (name, delay) in [("caller 1", 0), ("caller 2", 1)] {
            simulation.spawn(name) {
                try await simulation.clock.sleep(for: .seconds(delay))
                let token = try await simulation.ask(retrieve)
                try simulation.require(
                    server.accepts(token), "the token handed out is the one whose expiry was looked at, not an expired one")
            }
        }
        try await simulation.settle()
    }
}
