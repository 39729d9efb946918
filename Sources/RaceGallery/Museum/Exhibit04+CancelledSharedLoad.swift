import AccessTokens
import Interleavings

/// Caches the task that loads: callers share it while it runs, and afterwards its value is the cached token.
///
/// A caller passes its cancellation on, so that a load without callers does not go on. But the load is shared: caller 2 is
/// cancelled, and caller 1, which stays, gets `CancellationError`. The ended task stays in its place, so that all later
/// callers get it too.
///
/// The bug sits in `onCancel`. Exhibit 5 shows another bug of this service.
actor CachedTaskService {
    private let loader: any TokenLoader
    private let executor: (any TaskExecutor)?
    private var task: Task<AccessToken, any Error>?

    init(loader: some TokenLoader, executor: (any TaskExecutor)?) {
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
    static let cancelledSharedLoad = Exhibit(
        4, "Cancelling any waiter cancels the load that all share, and the cancellation is cached",
        source: "soto-core [R]",
        broken: { simulation in
            let service = CachedTaskService(loader: simulation.loader(), executor: simulation.seams.executor)
            try await secondCallerLeaves(simulation) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let service = simulation.service(loader: simulation.loader())
            try await secondCallerLeaves(simulation) { try await service.retrieveToken() }
        })

    private static func secondCallerLeaves(_ simulation: Simulation, _ retrieve: @escaping Retrieve) async throws {
        let callers = simulation.callers(1...2, retrieve)
        simulation.spawn("user") {
            try await simulation.clock.sleep(for: .milliseconds(500))
            simulation.log("leaves caller 2's screen: cancels it")
            callers[1].cancel()
        }
        let isFirstCancelled = await callers[0].wasCancelled
        _ = await callers[1].result
        let later = simulation.spawn("later caller") { try await simulation.ask(retrieve) }
        let isLaterCancelled = await later.wasCancelled
        try simulation.require(!isFirstCancelled && !isLaterCancelled, "callers that stay, or come later, are not cancelled")
    }
}
