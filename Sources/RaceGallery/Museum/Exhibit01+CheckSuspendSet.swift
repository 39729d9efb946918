import AccessTokens
import Interleavings

extension Exhibit {
    /// The broken service is ``ReentrantTokenService``, one of the contrast's designs.
    ///
    /// Caller 1 finds no token and awaits its load. The actor is free meanwhile, so caller 2 enters, finds what caller 1
    /// found, and loads as well. The bug sits between check and set, where the service awaits.
    static let checkSuspendSet = Exhibit(
        1, "Check, suspend, set: while one caller awaits its load, the next one enters and loads as well",
        source: "aws-sdk-swift's cached resolver [S]; spring-security#14123: 20 fetches",
        broken: { simulation in
            let loader = simulation.loader()
            let service = ReentrantTokenService(loader: loader, clock: simulation.seams.clock)
            try await twoCallers(simulation, loader) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let loader = simulation.loader()
            let service = simulation.service(loader: loader)
            try await twoCallers(simulation, loader) { try await service.retrieveToken() }
        })

    private static func twoCallers(
        _ simulation: Simulation, _ loader: NarratedLoader, _ retrieve: @escaping Retrieve
    ) async throws {
        for caller in simulation.callers(1...2, retrieve) { _ = await caller.result }
        try simulation.require(loader.begun <= 1, "one load, however many callers")
    }
}
