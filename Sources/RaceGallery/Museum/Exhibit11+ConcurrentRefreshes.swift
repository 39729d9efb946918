import AccessTokens
import AccessTokensTesting
import Interleavings

/// Refreshes the token for each request that reports a 401, with the refresh token that came with it.
///
/// Three requests are refused at once, and each asks for a refresh. The first one uses the refresh token, and the server
/// puts a new one in its place. Meanwhile the second presents the used one; the server treats that as theft and ends the
/// session. One expired token has signed the user out.
///
/// The bug sits in `refresh()`, which suspends without recording that it runs.
actor UncoalescedRefreshService {
    private let loader: any TokenLoader
    private var token: AccessToken

    init(_ token: AccessToken, loader: some TokenLoader) {
        self.token = token
        self.loader = loader
    }

    func retrieveToken() -> AccessToken { token }

    func refresh() async throws -> AccessToken {
        token = try await loader.loadToken(replacing: token)
        return token
    }
}

extension Exhibit {
    static let concurrentRefreshes = Exhibit(
        11, "Concurrent 401s start as many refreshes; if refresh tokens rotate, the session is lost",
        source: "OAuthenticator [R]: 20 refusals, 20 refreshes, login lost",
        broken: { simulation in
            let (server, first, loader) = rotatingServer(simulation)
            let service = UncoalescedRefreshService(first, loader: loader)
            try await refusalsAtOnce(simulation, server, { await service.retrieveToken() }) { _ in
                try await service.refresh()
            }
        },
        mended: { simulation in
            let (server, first, loader) = rotatingServer(simulation)
            let service = simulation.service(loader: loader)
            await service.replace(with: first)
            try await refusalsAtOnce(simulation, server, { try await service.retrieveToken() }) { refused in
                await service.invalidate(refused)
                return try await service.retrieveToken()
            }
        })

    private static func rotatingServer(_ simulation: Simulation) -> (
        SimulatedAuthorizationServer, first: AccessToken, NarratedLoader
    ) {
        let server = simulation.server(rotates: true)
        let first = server.signIn()
        server.revoke(first)
        return (server, first, simulation.loader(of: server))
    }

    private static func refusalsAtOnce(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer, _ retrieve: @escaping Retrieve,
        renew: @escaping @Sendable (_ refused: AccessToken) async throws -> AccessToken
    ) async throws {
        for number in 1...3 {
            simulation.spawn("request \(number)") {
                let token = try await retrieve()
                guard !server.accepts(token) else { return token }
                simulation.log("is answered 401: \(token.value) was revoked")
                return try await renew(token)
            }.allowingError()
        }
        try await simulation.settle()
        try simulation.require(server.reuseDetected == 0, "no refresh token is used twice: the server ends the session")
    }
}
