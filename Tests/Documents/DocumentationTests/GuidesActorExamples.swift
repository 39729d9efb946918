import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Insides
import Interleavings
import InterleavingsTesting
import Synchronization
import Testing

// The two actors in “Avoiding races”, under every schedule. `GuideTests` compares the page with this file.

private actor TokenCache {
    private let loader: any TokenLoader
    private var token: AccessToken?

    init(loader: some TokenLoader) {
        self.loader = loader
    }

    func retrieveToken() async throws -> AccessToken {
        if let token, token.isValid { return token }
        // Meanwhile the actor lets other callers in.
        let loaded = try await loader.loadToken(replacing: nil)
        token = loaded
        return loaded
    }
}

@Suite(.unlinked) struct `Avoiding races: the actors` {
    @Test func `the naive actor loads twice under the very first schedule`() async throws {
        let failure = try #require(
            await #expect(throws: ScheduleFailure.self) {
                try await explore(.exhaustive(delays: 2)) { simulation in
                    let server = SimulatedAuthorizationServer(
                        clock: simulation.clock, latency: .seconds(1))
                    let tokens = TokenCache(loader: server.loader)
                    simulation.spawn("Anna") { _ = try await tokens.retrieveToken() }
                    simulation.spawn("Ben") { _ = try await tokens.retrieveToken() }
                    try await simulation.settle()
                    try simulation.require(server.loadsStarted == 1, "one load for both")
                }
            })
        #expect(failure.description.hasPrefix("Schedule 1 ") && failure.description.contains("one load for both"))
    }

    @Test func `TokenService loads once under each of the schedules`() async throws {
        let summary = try await explore(.exhaustive(delays: 2)) { simulation in
            let server = SimulatedAuthorizationServer(
                clock: simulation.clock, latency: .seconds(1))
            let tokens = TokenService(
                environment: .driven(
                    by: simulation.taskExecutor, clock: simulation.clock,
                    seed: 1),
                loader: server.loader)
            simulation.spawn("Anna") { _ = try await tokens.retrieveToken() }
            simulation.spawn("Ben") { _ = try await tokens.retrieveToken() }
            try await simulation.settle()
            try simulation.require(server.loadsStarted == 1, "one load for both")
        }
        #expect(summary.omitsDefaultActorsOnly && summary.schedules > 10)
    }

    @Test func `a sign-out during a load is not undone by that load`() async throws {
        try await explore(.exhaustive(delays: 2)) { simulation in
            let server = SimulatedAuthorizationServer(
                clock: simulation.clock, latency: .seconds(1))
            let tokens = TokenService(
                environment: .driven(
                    by: simulation.taskExecutor, clock: simulation.clock,
                    seed: 1),
                loader: server.loader)
            let isAnswered = Mutex(false)
            simulation.spawn("Anna") {
                _ = try await tokens.retrieveToken()
                isAnswered.withLock { $0 = true }
            }.allowingError()
            simulation.spawn("sign-out") { _ = await tokens.reset() }
            try await simulation.settle()
            // Either she came before it and got an error,
            // or she came after it and it is her token.
            try simulation.require(
                isAnswered.withLock { $0 } == (tokens.cachedToken != nil),
                "nothing from before is left")
        }
    }
}
