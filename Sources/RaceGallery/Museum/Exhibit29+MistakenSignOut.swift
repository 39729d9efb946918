import AccessTokens
import AccessTokensTesting
import Interleavings

/// Drops the grant when a refresh fails.
///
/// A refresh fails, so the session seems to be over, and the user has to sign in again. But the train was in a tunnel: the
/// request never reached the server, and the refresh token was good for months.
///
/// The bug sits in a `catch` that doesn't look at the error.
actor SigningOutService {
    struct SignedOut: Error, CustomStringConvertible {
        let description = "the user is signed out"
    }

    private let loader: any TokenLoader
    private var token: KeptToken
    private var grant: AccessToken?

    init(loader: some TokenLoader, signedInWith token: AccessToken, clock: some Clock<Duration>) {
        self.loader = loader
        self.token = KeptToken(clock: clock)
        self.token.keep(token)
        grant = token
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        guard let grant else { throw SignedOut() }
        do {
            let renewed = try await loader.loadToken(replacing: grant)
            self.grant = renewed
            token.keep(renewed)
            return renewed
        } catch {
            // Only the server can say that the grant is invalid.
            self.grant = nil
            throw error
        }
    }
}

extension Exhibit {
    static let mistakenSignOut = Exhibit(
        29, "A transport error is taken for a sign-out", source: "OAuthenticator [R]; tuist PR#10276",
        broken: { simulation in
            let server = simulation.server(rotates: true)
            let service = SigningOutService(
                loader: simulation.loader(of: server), signedInWith: server.signIn(),
                clock: simulation.seams.clock)
            try await aTunnel(simulation, server) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server(rotates: true)
            let service = simulation.service(loader: simulation.loader(of: server))
            await service.replace(with: server.signIn())
            try await aTunnel(simulation, server) { try await service.retrieveToken() }
        })

    /// An hour after the sign-in the network goes away for a minute, just when a token is needed, or just after.
    private static func aTunnel(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping Retrieve
    ) async throws {
        try await simulation.clock.sleep(for: .seconds(3600))
        simulation.spawn("caller") { try await simulation.ask(retrieve) }.allowingError()
        simulation.spawn("network") {
            simulation.log("goes away")
            server.isReachable = false
            try await simulation.clock.sleep(for: .seconds(60))
            server.isReachable = true
            simulation.log("is back")
        }
        try await simulation.settle()
        let isSignedIn = (try? await simulation.ask(retrieve, saying: "asks, while the network works")) != nil
        try simulation.require(isSignedIn, "a request that fails on its way does not end the session")
    }
}
