import AccessTokens
import AccessTokensTesting
import Interleavings

/// Storage that an app and its extension can both read and write.
actor SharedKeychain {
    private(set) var grant: AccessToken?
    private var token: KeptToken

    init(signedInWith grant: AccessToken, clock: some Clock<Duration>) {
        self.grant = grant
        token = KeptToken(clock: clock)
        token.keep(grant)
    }

    var valid: AccessToken? { token.valid }

    func save(_ renewed: AccessToken?) {
        grant = renewed
        token.keep(renewed)
    }
}

/// Reads the token from a keychain that processes share, refreshes it, and writes the new one back.
///
/// The app and its extension find the same expired token, and present the same refresh token, which is good for one use: the
/// server treats the second as theft, and ends the session.
///
/// The bug sits between reading and writing: the other process does the same meanwhile. A lock around the write alone doesn't
/// help.
actor ProcessBlindService {
    private let loader: any TokenLoader
    private let keychain: SharedKeychain

    init(loader: some TokenLoader, keychain: SharedKeychain) {
        self.loader = loader
        self.keychain = keychain
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = await keychain.valid { return token }
        let renewed = try await loader.loadToken(replacing: keychain.grant)
        await keychain.save(renewed)
        return renewed
    }
}

extension Exhibit {
    static let uncoordinatedProcesses = Exhibit(
        32, "An app and its extension refresh with the same rotating refresh token",
        source: "supabase-swift#703; Auth0.swift#457; AppAuth#716",
        broken: { simulation in
            let server = simulation.server(keepsOneTokenValid: false, rotates: true)
            let keychain = SharedKeychain(signedInWith: server.signIn(), clock: simulation.seams.clock)
            let loader = simulation.loader(of: server)
            let processes = (0..<2).map { _ in ProcessBlindService(loader: loader, keychain: keychain) }
            try await appAndExtension(simulation, server) { try await processes[$0].retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server(keepsOneTokenValid: false, rotates: true)
            let processes = await simulation.processes(
                2, loader: simulation.loader(of: server), signedInWith: server.signIn())
            try await appAndExtension(simulation, server) { try await processes[$0].retrieveToken() }
        })

    /// An hour later, the app comes to the foreground while its extension starts to work.
    private static func appAndExtension(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping @Sendable (_ process: Int) async throws -> AccessToken
    ) async throws {
        try await simulation.clock.sleep(for: .seconds(3600))
        for (index, process) in ["app", "extension"].enumerated() {
            simulation.spawn(process) { try await simulation.ask { try await retrieve(index) } }.allowingError()
        }
        try await simulation.settle()
        try simulation.require(
            server.reuseDetected == 0, "only one of two processes presents the refresh token, so the session survives")
    }
}
