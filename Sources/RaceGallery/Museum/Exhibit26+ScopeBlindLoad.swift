import AccessTokens
import AccessTokensKeys
import Interleavings

/// Has a token for each scope, and one load at a time, whatever its scope.
///
/// A reader's load is under way. A writer asks, finds a load, joins it, and gets a token that may only read.
///
/// The bug sits in `load`: there is one, where `tokens` are many.
actor ScopeBlindService {
    private let makeLoader: @Sendable (_ scope: String) -> any TokenLoader
    private let executor: (any TaskExecutor)?
    private let clock: any Clock<Duration>
    private var tokens: [String: KeptToken] = [:]
    private var load: Task<AccessToken, any Error>?

    init(
        clock: any Clock<Duration>, executor: (any TaskExecutor)?,
        loader: @escaping @Sendable (_ scope: String) -> any TokenLoader
    ) {
        self.clock = clock
        self.executor = executor
        makeLoader = loader
    }

    func retrieveToken(scope: String) async throws -> AccessToken {
        if let token = tokens[scope]?.valid { return token }
        // One load for all callers, even for those that need another scope.
        if let load { return try await load.value }
        let loader = makeLoader(scope)
        let load = Task(executorPreference: executor) { try await loader.loadToken(replacing: nil) }
        self.load = load
        defer { self.load = nil }
        let loaded = try await load.value
        tokens[scope, default: KeptToken(clock: clock)].keep(loaded)
        return loaded
    }
}

extension Exhibit {
    static let scopeBlindLoad = Exhibit(
        26, "The load's key ignores scope or resource: callers get the wrong token", source: "Duende foss#360",
        broken: { simulation in
            let service = ScopeBlindService(clock: simulation.seams.clock, executor: simulation.seams.executor) { scope in
                loader(simulation, granting: scope)
            }
            try await aReaderAndAWriter(simulation) { try await service.retrieveToken(scope: $0) }
        },
        mended: { simulation in
            // A service for each scope, created when it is first requested.
            let services = simulation.services { scope in loader(simulation, granting: scope) }
            try await aReaderAndAWriter(simulation) { try await services[$0].retrieveToken() }
        })

    private static func aReaderAndAWriter(
        _ simulation: Simulation, _ retrieve: @escaping @Sendable (_ scope: String) async throws -> AccessToken
    ) async throws {
        for (name, scope, delay) in [("reader", "read", 0), ("writer", "write", 1)] {
            simulation.spawn(name) {
                try await simulation.clock.sleep(for: .seconds(delay))
                let token = try await simulation.ask({ try await retrieve(scope) }, saying: "asks for a token to \(scope)")
                try simulation.require(token.scope == scope, "a token that was requested for \(scope) has that scope")
            }.allowingError()
        }
        try await simulation.settle()
    }

    /// The loader of a server that grants what it is asked for.
    private static func loader(_ simulation: Simulation, granting scope: String) -> NarratedLoader {
        simulation.loader { _, _ in AccessToken("a token to \(scope)", lifetime: .seconds(3600), scope: scope) }
    }
}
