import AccessTokens
import AccessTokensTesting
import Interleavings

extension Exhibit {
    static let twentyEight = Exhibit(
        28, "Waiting by blocking a thread of the cooperative pool: exhaustion",
        source: "okta-mobile-swift PR#272; MSAL common PR#911: 64 threads", granularity: .accesses,
        broken: { simulation in
            let pool = NarrowPool(simulation, threads: 2)
            let loader = simulation.narrated(simulation.server().loader)
            let service = BlockingTokenService(loader: loader, clock: simulation.clock, executor: pool)
            try await callersOnANarrowPool(simulation, pool) { try service.retrieveToken() }
        },
        mended: { simulation in
            let pool = NarrowPool(simulation, threads: 2)
            let service = simulation.service(executor: pool, loader: simulation.server().loader)
            try await callersOnANarrowPool(simulation, pool) { try await service.retrieveToken() }
        })

    private static func callersOnANarrowPool(
        _ simulation: Simulation, _ pool: NarrowPool, _ retrieve: @escaping @Sendable () async throws -> AccessToken?
    ) async throws {
        for name in ["caller 1", "caller 2"] {
            simulation.spawn(name) {
                try await withTaskExecutorPreference(pool) {
                    simulation.log("asks for a token, on a thread of the pool")
                    let token = try await retrieve()
                    simulation.log("gets \(token?.value ?? "none")")
                }
            }
        }
        try await simulation.settle()
    }
}
