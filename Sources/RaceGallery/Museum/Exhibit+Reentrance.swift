import AccessTokens
import Interleavings

extension Exhibit {
    /// Museum 1: see ``ReentrantTokenService``.
    ///
    /// Caller 1 finds no token and awaits its load; the actor is free meanwhile, so caller 2 enters, finds what
    /// caller 1 found, and loads as well. It sits between check and set, where the service awaits.
    static let one = Exhibit(
        1, "Check, suspend, set: while one caller awaits its load, the next one enters and loads as well",
        source: "aws-sdk-swift's cached resolver; spring-security#14123: 20 fetches",
        broken: { simulation in
            let loader = Loader(simulation)
            let service = ReentrantTokenService(loader: loader, clock: simulation.clock)
            try await twoCallers(simulation, loader) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let loader = Loader(simulation)
            let service = loader.service()
            try await twoCallers(simulation, loader) { try await service.retrieveToken() }
        })

    private static func twoCallers(_ simulation: Simulation, _ loader: Loader, _ retrieve: @escaping Retrieve) async throws {
        for caller in callers(1...2, of: simulation, retrieve) { _ = await caller.result }
        try simulation.require(loader.begun <= 1, "one load, however many callers")
    }
}
