import AccessTokens
import Interleavings

/// Shares one load among its callers. When it ends, each of them makes room for the next load.
///
/// Two callers wait for a load that fails. Caller 1 wakes, sets `flight` to `nil` and asks again, which starts load 2. Only then
/// does caller 2 wake. It sets `flight` to `nil` as well, but that forgets load 2. It asks again and starts load 3 beside it. A
/// successful load hides the bug: later callers find a token.
///
/// The bug sits after the `await`, where each caller clears what only the first one should: compare before clearing.
actor ClearingWaitersService: LoadSharing {
    var shared: SharedLoad

    init(_ shared: SharedLoad) { self.shared = shared }

    func retrieveToken() async throws -> AccessToken {
        if let token = shared.token.valid { return token }
        let outcome = await join().result
        // The race: `flight` may already be the next load.
        shared.flight = nil
        let loaded = try outcome.get()
        shared.token.keep(loaded)
        return loaded
    }

    func load() async throws -> AccessToken { try await shared.loader.loadToken(replacing: nil) }
}

extension Exhibit {
    static let clearedSuccessor = Exhibit(
        33, "Each waiter of a failed load clears it, and the second one clears its successor: two loads at once",
        source: "google-cloud-swift@ed00569b [R]: more than one fetch at once in 149 of 150 trials",
        broken: { simulation in
            let loader = failingFirst(simulation, isRepeatable: false)
            let service = ClearingWaitersService(SharedLoad(simulation, loader: loader))
            try await callersThatAskAgain(simulation, loader) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let loader = failingFirst(simulation, isRepeatable: false)
            let service = simulation.service(loader: loader)
            try await callersThatAskAgain(simulation, loader) { try await service.retrieveToken() }
        })

    private static func callersThatAskAgain(
        _ simulation: Simulation, _ loader: NarratedLoader, _ retrieve: @escaping Retrieve
    ) async throws {
        let callers = (1...2).map { number in
            simulation.spawn("caller \(number)") {
                do { try await simulation.ask(retrieve) } catch { try await simulation.ask(retrieve, saying: "asks again") }
            }.allowingError()
        }
        for caller in callers { _ = await caller.result }
        try simulation.require(loader.begun <= 2, "a failed load is followed by one more, however many callers")
    }
}
