import AccessTokens
import AccessTokensTesting
import Interleavings

extension Exhibit {
    static let twentyOne = Exhibit(
        21, "Leeway sign inverted; leeway longer than the lifetime: busy loop",
        source: "gotrue-swift PR#55; gcloud-rust#6678",
        broken: { simulation in
            try await aServerWithShortTokens(simulation) { loader in
                let service = BusyTokenService(
                    loader: simulation.narrated(loader), clock: simulation.clock,
                    executor: simulation.taskExecutor)
                return { try await service.retrieveToken() }
            }
        },
        mended: { simulation in
            try await aServerWithShortTokens(simulation) { loader in
                let service = simulation.service(loader: loader)
                return { try await service.retrieveToken() }
            }
        })

    private typealias Ask = @Sendable () async throws -> AccessToken

    /// Two callers need a token for three requests each, a second apart.
    private static func aServerWithShortTokens(
        _ simulation: Simulation, _ makeService: (any TokenLoader) -> Ask
    ) async throws {
        let seconds = simulation.choose("the lifetime of tokens in seconds", among: [3600, 300, 60, 30]) ?? 30
        let server = simulation.server(lifetime: .seconds(seconds))
        let retrieve = makeService(server.loader)
        for name in ["caller 1", "caller 2"] {
            simulation.spawn(name) {
                for request in 1...3 {
                    try await simulation.ask(retrieve, saying: "asks for request \(request)")
                    try await simulation.clock.sleep(for: .seconds(1))
                }
            }
        }
        try await simulation.settle()
        try simulation.require(
            server.loadsStarted == 1, "a token that lives for \(seconds) s serves six requests in a few seconds: one load")
    }
}
