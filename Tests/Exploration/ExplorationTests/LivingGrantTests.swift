import AccessTokens
import AccessTokensTesting
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Guarantee 53: a sign-out at any moment of a refresh leaves no session alive at the server.
@Suite(.exploring()) struct `Sign-outs during a refresh, and the server's table of living grants` {
    /// A server that rotates, and whose revocation ends only the token that it is given, as at four of five servers.
    private final class Server: TokenLoader {
        private let living = Lock<Set<String>>(["r1"]), issued = Lock(1)
        private let simulation: Simulation
        let isRepeatable = false

        init(_ simulation: Simulation) { self.simulation = simulation }

        var table: Set<String> { living.withLock { $0 } }

        func revoke(_ token: AccessToken) {
            guard let grant = token.refreshToken else { return }
            _ = living.withLock { $0.remove(grant) }
        }

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            try await simulation.clock.sleep(for: .seconds(1))
            guard let spent = previous?.refreshToken, living.withLock({ $0.remove(spent) }) != nil else {
                throw ScriptedFailure.grantRefused
            }
            // A request that is cancelled from here on has spent the grant.
            let next = issued.withLock { number in
                number += 1
                return "r\(number)"
            }
            _ = living.withLock { $0.insert(next) }
            try await simulation.clock.sleep(for: .seconds(1))
            return AccessToken("a \(next)", lifetime: .seconds(3_600), refreshToken: next)
        }
    }

    @Test(arguments: [false, true], [false, true])
    func `53: whenever the user signs out, every token issued by the end of the drain is revoked`(
        hasStore: Bool, signsIn: Bool
    ) async throws {
        let summary = try await explore(.exhaustive(delays: .everyday(2, thorough: 3))) { simulation in
            let server = Server(simulation)
            let tokens = TokenService(
                store: hasStore ? InMemoryTokenStore() : nil,
                environment: .driven(by: simulation.taskExecutor, clock: simulation.clock, seed: 1),
                onDiscard: { server.revoke($0.token) }, loader: server)
            await tokens.replace(with: AccessToken("expired", lifetime: .zero, refreshToken: "r1"))
            simulation.spawn("caller") { _ = try? await tokens.retrieveToken() }
            simulation.spawn("user") {
                // Before the request, with it, while it is under way, with its answer, and after that.
                try? await simulation.clock.sleep(for: .milliseconds(500 * simulation.choose("moment", 6)))
                if signsIn {
                    await tokens.replace(with: AccessToken("another", lifetime: .seconds(3_600), refreshToken: "other"))
                } else {
                    _ = await tokens.reset()
                }
            }
            try await simulation.settle()
            await tokens.drain(within: .seconds(100))
            try simulation.require(server.table.isEmpty, "left alive: \(server.table)")
        }
        #expect(summary.coverage.isAllWithinBounds)
    }
}
