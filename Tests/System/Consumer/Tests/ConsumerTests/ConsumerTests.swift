import AccessTokens
import AccessTokensTesting
import Interleavings
import InterleavingsTesting
import Testing

@Suite(.exploring(schedules: 200)) struct ConsumerTests {
    @Test func `two callers make one load, or two with a sign-out between`() async throws {
        let summary = try await explore { simulation in
            let server = SimulatedAuthorizationServer(
                clock: simulation.clock, latency: .seconds(1), executor: simulation.taskExecutor)
            let tokens = TokenService(
                environment: .driven(by: simulation.taskExecutor, clock: simulation.clock, seed: 1), loader: server.loader)
            for name in ["Anna", "Ben"] {
                // A caller may get an error because of a sign-out, which is correct.
                simulation.spawn(name) { _ = try await tokens.retrieveToken() }.allowingError()
            }
            simulation.spawn("sign out") { _ = await tokens.reset() }
            try await simulation.settle()
            try simulation.require(server.loadsStarted <= 2, "one load, or two with the sign-out between")
        }
        #expect(summary.schedules > 0)
    }

    @Test func `a refused token is not handed out again`() async throws {
        let server = SimulatedAuthorizationServer(clock: ManualClock())
        let tokens = TokenService(loader: server.loader)
        let first = try await tokens.retrieveToken()
        server.revoke(first)
        await tokens.invalidate(first)
        #expect(server.accepts(try await tokens.retrieveToken()))
    }
}
