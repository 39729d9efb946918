import AccessTokens
import AccessTokensTesting
import Interleavings

/// Caches the task that loads: it is the flight that callers share, and afterwards its value is the cached token.
///
/// Who waits passes its cancellation on, so that a load which nobody wants does not go on. But it is everybody's load:
/// caller 2 is cancelled, and caller 1, who stays, gets `CancellationError` (museum 4). And the ended task stays: whatever
/// it ended with, cancellation or a failure of the network, is the answer to all later callers, for ever (museum 5).
///
/// Shipped in soto-core, the first reproduced, the second as soto-core#708. They sit in `onCancel`, and where a task that
/// failed is not forgotten.
actor CachedTaskService {
    private let loader: any TokenLoader
    private let executor: any TaskExecutor
    private var task: Task<AccessToken, any Error>?

    init(loader: some TokenLoader, executor: any TaskExecutor) {
        self.loader = loader
        self.executor = executor
    }

    func retrieveToken() async throws -> AccessToken {
        let task = task ?? Task(executorPreference: executor) { [loader] in try await loader.loadToken(replacing: nil) }
        self.task = task
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }
}

extension Exhibit {
    /// Museum 4: see ``CachedTaskService``.
    static let four = Exhibit(
        4, "Cancelling any waiter cancels the load that all share, and what is cached is the cancellation",
        source: "soto-core, reproduced",
        broken: { simulation in
            let service = CachedTaskService(loader: Loader(simulation), executor: simulation.taskExecutor)
            try await secondCallerLeaves(simulation) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let service = Loader(simulation).service()
            try await secondCallerLeaves(simulation) { try await service.retrieveToken() }
        })

    private static func secondCallerLeaves(_ simulation: Simulation, _ retrieve: @escaping Retrieve) async throws {
        let callers = callers(1...2, of: simulation, retrieve)
        simulation.spawn("person") {
            try await simulation.clock.sleep(for: .milliseconds(500))
            simulation.log("leaves caller 2's screen: cancels it")
            callers[1].cancel()
        }
        let isFirstCancelled = await callers[0].wasCancelled
        _ = await callers[1].result
        let later = simulation.spawn("later caller") { try await retrieve().value }
        let isLaterCancelled = await later.wasCancelled
        try simulation.require(!isFirstCancelled && !isLaterCancelled, "who stays, or comes later, is not cancelled")
    }

    /// Museum 5: see ``CachedTaskService``.
    static let five = Exhibit(
        5, "A load that failed is cached like a token, and served for ever",
        source: "soto-core#708",
        broken: { simulation in
            let loader = failingFirst(simulation)
            let service = CachedTaskService(loader: loader, executor: simulation.taskExecutor)
            try await callersAfterAFailure(simulation, loader) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let loader = failingFirst(simulation)
            let service = loader.service()
            try await callersAfterAFailure(simulation, loader) { try await service.retrieveToken() }
        })

    private static func failingFirst(_ simulation: Simulation) -> Loader {
        Loader(
            simulation, isRepeatable: true,
            answer: { number, _ in
                guard number > 1 else { throw ScriptedFailure.transient }
                return AccessToken("token \(number)", lifetime: .seconds(3600))
            })
    }

    private static func callersAfterAFailure(
        _ simulation: Simulation, _ loader: Loader, _ retrieve: @escaping Retrieve
    ) async throws {
        for caller in callers(1...2, of: simulation, retrieve) { _ = await caller.result }
        try await simulation.clock.sleep(for: .seconds(60))
        simulation.log("the network is back")
        _ = await simulation.spawn("later caller") { try await retrieve().value }.result
        try simulation.require(loader.begun > 1, "after a failure the server is asked again")
    }
}
