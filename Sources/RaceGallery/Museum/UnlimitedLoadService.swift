import AccessTokens
import Interleavings

/// Shares one load among its callers, and gives it as long as it takes.
///
/// Caller 1 starts a load that the server never answers: a connection that nobody closes. Everybody who comes later finds
/// a load under way and waits for it, for as long.
///
/// Shipped in MeetingBar (PR#951) and ktor (KTOR-5879). It sits in what is not here: a limit for the load.
actor UnlimitedLoadService {
    private let loader: any TokenLoader
    private let executor: any TaskExecutor
    private var token: KeptToken
    private var flight: Task<AccessToken, any Error>?

    init(loader: some TokenLoader, clock: some Clock<Duration>, executor: any TaskExecutor) {
        self.loader = loader
        self.executor = executor
        token = KeptToken(clock: clock)
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        let flight = flight ?? Task(executorPreference: executor) { try await self.load() }
        self.flight = flight
        return try await flight.value
    }

    private func load() async throws -> AccessToken {
        defer { flight = nil }
        let loaded = try await loader.loadToken(replacing: nil)
        token.keep(loaded)
        return loaded
    }
}

extension Exhibit {
    /// Museum 14: see ``UnlimitedLoadService``.
    static let fourteen = Exhibit(
        14, "A loader that never answers blocks all later callers",
        source: "MeetingBar PR#951; KTOR-5879",
        broken: { simulation in
            let service = UnlimitedLoadService(
                loader: silentServer(simulation), clock: simulation.clock, executor: simulation.taskExecutor)
            try await callersOfASilentServer(simulation, secondAfter: .seconds(300)) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let service = silentServer(simulation).service()
            try await callersOfASilentServer(simulation, secondAfter: .seconds(300)) { try await service.retrieveToken() }
        })
}
