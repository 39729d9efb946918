import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Interleavings

/// Has a token for each audience, one load at a time for each of them, and one refresh token for all.
///
/// Two screens need tokens of two audiences. Each finds no load of its own audience, and begins one. Both present the same
/// refresh token, which is good for one use: the server treats the second as theft, and ends the session.
///
/// The bug sits in `loads`: loads are kept by audience, but the refresh token that they spend belongs to the account.
actor AudienceKeyedService {
    private let loader: any TokenLoader
    private let executor: (any TaskExecutor)?
    private let clock: any Clock<Duration>
    private var grant: AccessToken
    private var tokens: [String: KeptToken] = [:]
    private var loads: [String: Task<AccessToken, any Error>] = [:]

    init(
        loader: some TokenLoader, signedInWith grant: AccessToken, clock: any Clock<Duration>, executor: (any TaskExecutor)?
    ) {
        self.loader = loader
        self.grant = grant
        self.clock = clock
        self.executor = executor
    }

    func retrieveToken(audience: String) async throws -> AccessToken {
        if let token = tokens[audience]?.valid { return token }
        if let load = loads[audience] { return try await load.value }
        let load = Task(executorPreference: executor) { [loader, grant] in try await loader.loadToken(replacing: grant) }
        loads[audience] = load
        defer { loads[audience] = nil }
        let loaded = try await load.value
        grant = loaded
        tokens[audience, default: KeptToken(clock: clock)].keep(loaded)
        return loaded
    }
}

extension Exhibit {
    static let parallelSpending = Exhibit(
        30, "Loads of several audiences spend one rotating refresh token at once", source: "auth0-spa-js#1684, PR#1702",
        broken: { simulation in
            let server = simulation.server(keepsOneTokenValid: false, rotates: true)
            let service = AudienceKeyedService(
                loader: simulation.loader(of: server), signedInWith: server.signIn(), clock: simulation.seams.clock,
                executor: simulation.seams.executor)
            try await twoAudiences(simulation, server) { try await service.retrieveToken(audience: $0) }
        },
        mended: { simulation in
            let server = simulation.server(keepsOneTokenValid: false, rotates: true)
            let loader = simulation.loader(of: server)
            // The account keeps the refresh token of all audiences.
            let services = simulation.services(grant: { _ in "account" }, loader: { _ in loader })
            await services["account"].replace(with: server.signIn())
            try await twoAudiences(simulation, server) { try await services[$0].retrieveToken() }
        })

    private static func twoAudiences(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping @Sendable (_ audience: String) async throws -> AccessToken
    ) async throws {
        for audience in ["orders", "mail"] {
            simulation.spawn("screen of \(audience)") {
                try await simulation.ask({ try await retrieve(audience) }, saying: "asks for a token for \(audience)")
            }.allowingError()
        }
        try await simulation.settle()
        try simulation.require(server.reuseDetected == 0, "keys with one refresh token take turns, so the session survives")
    }
}
