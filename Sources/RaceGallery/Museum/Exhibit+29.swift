import AccessTokens
import AccessTokensTesting
import Interleavings

extension Exhibit {
    static let twentyNine = Exhibit(
        29, "A transport error is taken for a sign-out", source: "OAuthenticator [R]; tuist PR#10276",
        broken: { simulation in
            let server = simulation.server(rotates: true)
            let service = SigningOutTokenService(
                loader: simulation.narrated(server.loader), signedInWith: server.signIn(),
                clock: simulation.clock)
            try await aTunnel(simulation, server) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server(rotates: true)
            let service = simulation.service(loader: server.loader)
            await service.replace(with: server.signIn())
            try await aTunnel(simulation, server) { try await service.retrieveToken() }
        })

    /// An hour after the sign-in the network goes away for a minute, just when a token is needed, or just after.
    private static func aTunnel(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping @Sendable () async throws -> AccessToken
    ) async throws {
        try await simulation.clock.sleep(for: .seconds(3600))
        simulation.spawn("caller") { _ = try await simulation.ask(retrieve) }
        simulation.spawn("network") {
            simulation.log("goes away")
            server.isReachable = false
            try await simulation.clock.sleep(for: .seconds(60))
            server.isReachable = true
            simulation.log("is back")
        }
        try await simulation.settle()
        let isSignedIn = (try? await simulation.ask(retrieve, saying: "asks, with the network there")) != nil
        try simulation.require(isSignedIn, "a request that failed on its way signs nobody out")
    }
}
