import AccessTokens
import AccessTokensTesting
import Interleavings

extension Exhibit {
    /// The broken service is ``CachedTaskService``, that of exhibit 4.
    ///
    /// The network fails once, and the task that loads fails with it. The ended task stays in its place, and its failure is
    /// the answer to all later callers. The bug sits where a task that failed is not forgotten.
    static let cachedFailure = Exhibit(
        5, "A load that failed is cached like a token, and is the answer to all later callers",
        source: "soto-core#708",
        broken: { simulation in
            let loader = failingFirst(simulation)
            let service = CachedTaskService(loader: loader, executor: simulation.seams.executor)
            try await callersAfterAFailure(simulation, loader) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let loader = failingFirst(simulation)
            let service = simulation.service(loader: loader)
            try await callersAfterAFailure(simulation, loader) { try await service.retrieveToken() }
        })

    /// A loader whose first load fails.
    static func failingFirst(_ simulation: Simulation, isRepeatable: Bool = true) -> NarratedLoader {
        simulation.loader(isRepeatable: isRepeatable) { number, _ in
            guard number > 1 else { throw ScriptedFailure() }
            return AccessToken("token \(number)", lifetime: .seconds(3600))
        }
    }

    private static func callersAfterAFailure(
        _ simulation: Simulation, _ loader: NarratedLoader, _ retrieve: @escaping Retrieve
    ) async throws {
        for caller in simulation.callers(1...2, retrieve) { _ = await caller.result }
        try await simulation.clock.sleep(for: .seconds(60))
        simulation.log("the network is back")
        _ = await simulation.spawn("later caller") { try await simulation.ask(retrieve) }.result
        try simulation.require(loader.begun > 1, "after a failure the server is asked again")
    }
}
