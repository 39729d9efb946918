import AccessTokens
import Interleavings

/// Refreshes ahead of expiry, in the background, and marks a running refresh with a flag.
///
/// Caller 1 finds the flag down and starts a refresh. Before that task has had its first turn, caller 2 finds the flag
/// down as well. The flag goes up inside the spawned work, a moment too late, and so twice: two refreshes.
///
/// The bug sits in `refresh()`: its first line belongs before the `Task`.
actor FlagInsideTaskService {
    private let loader: any TokenLoader
    private let elapsed: @Sendable () -> Duration
    private let executor: (any TaskExecutor)?
    private var token: AccessToken
    private var refreshFrom: Duration
    private var isRefreshing = false

    private static let refreshAfter = Duration.seconds(45 * 60)

    init<C: Clock<Duration>>(_ token: AccessToken, loader: some TokenLoader, clock: C, executor: (any TaskExecutor)?) {
        self.token = token
        self.loader = loader
        self.executor = executor
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
        refreshFrom = Self.refreshAfter
    }

    func retrieveToken() -> AccessToken {
        if elapsed() >= refreshFrom, !isRefreshing {
            Task(executorPreference: executor) { await self.refresh() }
        }
        return token
    }

    private func refresh() async {
        isRefreshing = true
        defer { isRefreshing = false }
        guard let loaded = try? await loader.loadToken(replacing: token) else { return }
        token = loaded
        refreshFrom = elapsed() + Self.refreshAfter
    }
}

extension Exhibit {
    static let lateFlag = Exhibit(
        2, "A flag that is set inside the spawned work is set too late: the next caller spawns it again",
        source: "google-cloud-go PR#12586",
        broken: { simulation in
            let loader = simulation.loader()
            let service = FlagInsideTaskService(
                .signedIn, loader: loader, clock: simulation.seams.clock, executor: simulation.seams.executor)
            try await callersInTheSoftWindow(simulation, loader) { await service.retrieveToken() }
        },
        mended: { simulation in
            let loader = simulation.loader()
            let service = simulation.service(loader: loader)
            await service.replace(with: .signedIn)
            try await callersInTheSoftWindow(simulation, loader) { try await service.retrieveToken() }
        })

    private static func callersInTheSoftWindow(
        _ simulation: Simulation, _ loader: NarratedLoader, _ retrieve: @escaping Retrieve
    ) async throws {
        try await simulation.clock.sleep(for: .seconds(50 * 60))
        simulation.log("the token is old now, but still valid")
        for caller in simulation.callers(1...2, retrieve) { _ = await caller.result }
        try await simulation.settle()
        try simulation.require(loader.begun <= 1, "one refresh ahead, however many callers notice that it is due")
    }
}
