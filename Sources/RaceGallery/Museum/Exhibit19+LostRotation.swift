import AccessTokens
import AccessTokensTesting
import Interleavings

/// Refreshes in the caller's own task, with a refresh token that is good for one use.
///
/// The server takes the refresh token and sends the next. Meanwhile the caller's screen is closed, and its cancelled task
/// throws before the new token is kept. The service has a used refresh token: the next caller presents it, and the server
/// ends the session, as after a theft.
///
/// The bug sits in the line that loads: if it throws for any reason after the server has rotated the token, the grant is lost.
actor GrantLosingService {
    private let loader: any TokenLoader
    private var token: KeptToken
    private var grant: AccessToken

    init(loader: some TokenLoader, signedInWith token: AccessToken, clock: some Clock<Duration>) {
        self.loader = loader
        self.token = KeptToken(clock: clock)
        self.token.keep(token)
        grant = token
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        // The race: the caller's cancellation against the answer, which has the only good refresh token.
        let renewed = try await loader.loadToken(replacing: grant)
        grant = renewed
        token.keep(renewed)
        return renewed
    }
}

extension Exhibit {
    static let lostRotation = Exhibit(
        19, "A rotated refresh token is thrown away",
        source: "Auth0.swift [S]: `.largeMinTTL` returned before the store; okta-idx-swift#120; ktor KTOR-8285",
        broken: { simulation in
            let server = simulation.server(rotates: true)
            let loader = simulation.loader(of: server)
            let service = GrantLosingService(
                loader: loader, signedInWith: server.signIn(), clock: simulation.seams.clock)
            try await aScreenThatCloses(simulation, server) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server(rotates: true)
            let service = simulation.service(loader: simulation.loader(of: server))
            await service.replace(with: server.signIn())
            try await aScreenThatCloses(simulation, server) { try await service.retrieveToken() }
        })

    /// An hour later one screen needs a token, and may be closed while it waits; then another one needs it.
    private static func aScreenThatCloses(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping Retrieve
    ) async throws {
        try await simulation.clock.sleep(for: .seconds(3600))
        let screen = simulation.spawn("screen 1") { _ = try await simulation.ask(retrieve) }
        simulation.spawn("user") {
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
