import AccessTokens
import AccessTokensTesting
import Interleavings

extension Exhibit {
    static let nineteen = Exhibit(
        19, "A rotated refresh token is thrown away",
        source: "Auth0.swift [S]: `.largeMinTTL` returned before the store; okta-idx-swift#120; ktor KTOR-8285",
        broken: { simulation in
            let server = simulation.server(rotates: true)
            let loader = simulation.narrated(server.loader)
            let service = GrantLosingTokenService(
                loader: loader, signedInWith: server.signIn(), clock: simulation.clock)
            try await aScreenThatCloses(simulation, server) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server(rotates: true)
            let service = simulation.service(loader: server.loader)
            await service.replace(with: server.signIn())
            try await aScreenThatCloses(simulation, server) { try await service.retrieveToken() }
        })

    /// An hour later one screen needs a token, and may be closed while it waits; then another one needs it.
    private static func aScreenThatCloses(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping @Sendable () async throws -> AccessToken
    ) async throws {
        try await simulation.clock.sleep(for: .seconds(3600))
        let screen = simulation.spawn("screen 1") { _ = try await simulation.ask(retrieve) }
        simulation.spawn("person") {
            let delay = simulation.choose("the milliseconds until screen 1 closes", among: [2_000, 500])
            try await simulation.clock.sleep(for: .milliseconds(delay ?? 0))
            simulation.log("closes screen 1")
            screen.cancel()
        }
        try await simulation.settle()
        let next = simulation.spawn("screen 2") { _ = try await simulation.ask(retrieve) }
        let isSignedIn = (try? await next.value) != nil
        try simulation.require(
            isSignedIn && server.reuseDetected == 0, "the session survives a caller that leaves: no refresh token is sent twice")
    }
}
