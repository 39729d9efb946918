import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

extension Exhibit {
    static let twenty = Exhibit(
        20, "The loader's own request asks the service for a token: deadlock", source: "vellum PR#22311; GTMAppAuth [S]",
        broken: { simulation in
            try await aLoaderWithTheAppsClient(simulation) { loader in
                let service = SelfAwaitingTokenService(
                    loader: simulation.narrated(loader), clock: simulation.clock,
                    executor: simulation.taskExecutor)
                return { try await service.retrieveToken() }
            }
        },
        mended: { simulation in
            try await aLoaderWithTheAppsClient(simulation) { loader in
                let service = simulation.service(loader: loader)
                return { try await service.retrieveToken() }
            }
        })

    private typealias Ask = @Sendable () async throws -> AccessToken

    /// Everybody gets a token, or an error that says why not.
    private static func aLoaderWithTheAppsClient(
        _ simulation: Simulation, _ makeService: (any TokenLoader) -> Ask
    ) async throws {
        let loader = DiscoveringLoader(simulation: simulation, loader: simulation.server().loader)
        let retrieve = makeService(loader)
        loader.client.withLock { $0 = retrieve }
        // The service has the loader, which has the service.
        defer { loader.client.withLock { $0 = nil } }
        for name in ["caller 1", "caller 2"] {
            simulation.spawn(name) { _ = try await simulation.ask(retrieve) }
        }
        try await simulation.settle()
        let seconds = simulation.clock.now.offset / .seconds(1)
        try simulation.require(seconds < 30, "a load that waits for itself is told so at once, not by a time limit")
    }

    /// A loader that first asks, with the app's client, where the token endpoint is.
    private final class DiscoveringLoader: TokenLoader {
        let simulation: Simulation
        let loader: any TokenLoader
        let client = Lock<Ask?>(nil)

        init(simulation: Simulation, loader: some TokenLoader) {
            self.simulation = simulation
            self.loader = loader
        }

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            let isKnown = simulation.choose("whether the endpoint is cached", among: [true, false])
            if isKnown == false, let retrieve = client.withLock({ $0 }) {
                simulation.log("the client wants a token for the loader's own request")
                _ = try await retrieve()
            }
            return try await loader.loadToken(replacing: previous)
        }
    }
}
