import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// Shares one load among its callers, the load's own task included.
///
/// All requests of the app go through one client, which asks the service for a token and adds it. So do the loader's: to find the
/// token endpoint, it requests the server's metadata through that client, which asks the service, which joins the running load:
/// this one. The load waits for itself, and every caller waits for the load.
///
/// The bug sits in joining the load without checking which task asks. It hides as long as the metadata is cached.
actor SelfAwaitingService: LoadSharing {
    var shared: SharedLoad

    init(_ shared: SharedLoad) { self.shared = shared }

    func retrieveToken() async throws -> AccessToken {
        if let token = shared.token.valid { return token }
        // The load itself may be asking.
        return try await join().value
    }
}

extension Exhibit {
    static let selfAwaitingLoad = Exhibit(
        20, "The loader's own request asks the service for a token: deadlock", source: "vellum PR#22311; GTMAppAuth [S]",
        broken: { simulation in
            try await aLoaderWithTheAppsClient(simulation) { loader in
                let service = SelfAwaitingService(SharedLoad(simulation, loader: loader))
                return { try await service.retrieveToken() }
            }
        },
        mended: { simulation in
            try await aLoaderWithTheAppsClient(simulation) { loader in
                let service = simulation.service(loader: loader)
                return { try await service.retrieveToken() }
            }
        })

    /// Each caller gets a token, or an error with the reason.
    private static func aLoaderWithTheAppsClient(
        _ simulation: Simulation, _ makeService: (any TokenLoader) -> Retrieve
    ) async throws {
        // A cycle: the service has the loader, which has the client, which has the service.
        let client = Client()
        defer { client.retrieve.withLock { $0 = nil } }
        let retrieve = makeService(discoveringLoader(simulation, client: client))
        client.retrieve.withLock { $0 = retrieve }
        let answered = Lock(Duration.zero)
        simulation.callers(1...2) {
            defer { answered.withLock { $0 = simulation.clock.now.offset } }
            return try await retrieve()
        }
        try await simulation.settle()
        try simulation.require(
            answered.withLock { $0 } < .seconds(30), "a load that waits for itself is told so at once, not by a time limit")
    }

    /// The client through which all requests of the app go.
    private final class Client: Sendable {
        let retrieve = Lock<Retrieve?>(nil)
    }

    /// A loader that first asks, with the app's client, where the token endpoint is.
    private static func discoveringLoader(_ simulation: Simulation, client: Client) -> NarratedLoader {
        let loader = simulation.server().loader
        return NarratedLoader(simulation, isRepeatable: loader.isRepeatable) { _, previous in
            let isKnown = simulation.choose("whether the endpoint is cached", among: [true, false])
            if isKnown == false, let retrieve = client.retrieve.withLock({ $0 }) {
                simulation.log("the client wants a token for the loader's own request")
                _ = try await retrieve()
            }
            return try await loader.loadToken(replacing: previous)
        }
    }
}
