import AccessTokens
import AccessTokensTesting
import Interleavings

extension Exhibit {
    static let twentyFour = Exhibit(
        24, "Invalidating during a refresh still stores the stale value; a completed refresh is discarded",
        source: "caffeine#193; caffeine#1970",
        broken: { simulation in
            let server = simulation.server()
            let service = StaleRefreshTokenService(
                loader: simulation.narrated(server.loader), clock: simulation.clock,
                executor: simulation.taskExecutor)
            try await aRefusalDuringARefresh(simulation, server) {
                try await service.retrieveToken()
            } invalidate: {
                await service.invalidate($0)
            }
        },
        mended: { simulation in
            let server = simulation.server()
            let service = simulation.service(loader: server.loader)
            try await aRefusalDuringARefresh(simulation, server) {
                try await service.retrieveToken()
            } invalidate: {
                await service.invalidate($0)
            }
        })

    /// Ahead of expiry a caller's request is refused, while the server's cache still has the refused token.
    private static func aRefusalDuringARefresh(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping @Sendable () async throws -> AccessToken,
        invalidate: @escaping @Sendable (AccessToken) async -> Void
    ) async throws {
        let first = try await retrieve()
        try await simulation.clock.sleep(for: .seconds(3000))
        server.answersRepeatedToken = true
        simulation.spawn("caller 1") {
            _ = try await simulation.ask(retrieve, saying: "asks, and so starts a refresh ahead")
        }
        simulation.spawn("caller 2") {
            // Its request takes as long as the refresh.
            try await simulation.clock.sleep(for: .seconds(1))
            server.revoke(first)
            server.answersRepeatedToken = false
            simulation.log("is refused with \(first.value), invalidates it")
            await invalidate(first)
        }
        try await simulation.settle()
        simulation.spawn("caller 3") {
            let token = try await simulation.ask(retrieve)
            try simulation.require(token.value != first.value, "a refused token is never handed out again")
        }
        try await simulation.settle()
    }
}
