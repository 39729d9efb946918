import AccessTokens
import Interleavings

/// Shares one load among its callers. When it ends, each of them makes room for the next load.
///
/// Two callers wait for a load that fails. Caller 1 wakes, sets `flight` to `nil` and asks again, which starts load 2. Only
/// then caller 2 wakes. It sets `flight` to `nil` as well, but what it forgets is load 2. It asks again and starts load 3
/// beside it. A load that succeeds hides the mistake: the callers that come next have a token.
///
/// The bug sits after the `await`, where each caller clears what only the first one should: compare before clearing.
actor ClearingWaitersService {
    private let loader: any TokenLoader
    private let executor: (any TaskExecutor)?
    private var token: KeptToken
    private var flight: Task<AccessToken, any Error>?

    init(loader: some TokenLoader, clock: some Clock<Duration>, executor: (any TaskExecutor)?) {
        self.loader = loader
        self.executor = executor
        token = KeptToken(clock: clock)
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        let flight = flight ?? Task(executorPreference: executor) { [loader] in try await loader.loadToken(replacing: nil) }
        self.flight = flight
        let outcome = await flight.result
        // The race: this may be the next load by now.
        self.flight = nil
        let loaded = try outcome.get()
        token.keep(loaded)
        return loaded
    }
}

extension Exhibit {
    static let clearedSuccessor = Exhibit(
        33, "Each waiter of a failed load clears it, and the second one clears its successor: two loads at once",
        source: "google-cloud-swift@ed00569b [R]: more than one fetch at once in 149 of 150 trials",
        broken: { simulation in
            let loader = failingFirst(simulation, isRepeatable: false)
            let service = ClearingWaitersService(
                loader: loader, clock: simulation.seams.clock, executor: simulation.seams.executor)
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
        try simulation.require(loader.begun <= 2, "after a failed load one more, however many callers")
    }
}
