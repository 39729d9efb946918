import AccessTokens
import Interleavings

/// The first caller loads, in its own task; the others wait for the result.
///
/// Caller 1 loads, caller 2 waits for it. Meanwhile the user leaves caller 1's screen, and its task is cancelled: the load,
/// which runs in that task, ends with `CancellationError`. Caller 2, which was not cancelled, gets it too.
///
/// The bug sits where the loader is called on the caller's own task.
actor FirstCallerLoadsService {
    private let loader: any TokenLoader
    private var token: KeptToken
    private var isLoading = false
    private var waiters: [CheckedContinuation<AccessToken, any Error>] = []

    init(loader: some TokenLoader, clock: some Clock<Duration>) {
        self.loader = loader
        token = KeptToken(clock: clock)
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        guard !isLoading else { return try await withCheckedThrowingContinuation { waiters.append($0) } }
        isLoading = true
        do {
            let loaded = try await loader.loadToken(replacing: nil)
            token.keep(loaded)
            answer(.success(loaded))
            return loaded
        } catch {
            answer(.failure(error))
            throw error
        }
    }

    private func answer(_ result: Result<AccessToken, any Error>) {
        isLoading = false
        let waiters = waiters
        self.waiters = []
        for waiter in waiters { waiter.resume(with: result) }
    }
}

extension Exhibit {
    static let cancelledFirstCaller = Exhibit(
        3, "Cancelling the first caller, whose task loads for all, fails the others",
        source: "okta-mobile-swift [R]; azure-sdk-for-net#19424",
        broken: { simulation in
            let service = FirstCallerLoadsService(loader: simulation.loader(), clock: simulation.seams.clock)
            try await firstCallerLeaves(simulation) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let service = simulation.service(loader: simulation.loader())
            try await firstCallerLeaves(simulation) { try await service.retrieveToken() }
        })

    private static func firstCallerLeaves(_ simulation: Simulation, _ retrieve: @escaping Retrieve) async throws {
        let callers = simulation.callers(1...2, retrieve)
        simulation.spawn("user") {
            try await simulation.clock.sleep(for: .milliseconds(500))
            simulation.log("leaves caller 1's screen: cancels it")
            callers[0].cancel()
        }
        try simulation.require(await !callers[1].wasCancelled, "a caller that stays is not cancelled")
    }
}
