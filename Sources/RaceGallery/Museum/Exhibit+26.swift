import AccessTokens
import Interleavings

extension Exhibit {
    static let twentySix = Exhibit(
        26, "The flight's key ignores scope or resource: the wrong token", source: "Duende foss#360",
        broken: { simulation in
            let service = ScopeBlindTokenService(clock: simulation.clock, executor: simulation.taskExecutor) { scope in
                simulation.narrated(ScopeLoader(simulation: simulation, scope: scope))
            }
            try await aReaderAndAWriter(simulation) { try await service.retrieveToken(scope: $0) }
        },
        mended: { simulation in
            // One service for each token that a program needs.
            let reading = simulation.service(loader: ScopeLoader(simulation: simulation, scope: "read"))
            let writing = simulation.service(loader: ScopeLoader(simulation: simulation, scope: "write"))
            try await aReaderAndAWriter(simulation) { try await ($0 == "write" ? writing : reading).retrieveToken() }
        })

    private static func aReaderAndAWriter(
        _ simulation: Simulation, _ retrieve: @escaping @Sendable (_ scope: String) async throws -> AccessToken
    ) async throws {
        for (name, scope, delay) in [("reader", "read", 0), ("writer", "write", 1)] {
            simulation.spawn(name) {
                try await simulation.clock.sleep(for: .seconds(delay))
                let token = try await simulation.ask({ try await retrieve(scope) }, saying: "asks for a token to \(scope)")
                try simulation.require(token.scope == scope, "a token that is wanted to \(scope) may be used for that")
            }
        }
        try await simulation.settle()
    }
}

/// A server that grants what it is asked for, in a second.
private struct ScopeLoader: TokenLoader {
    let simulation: Simulation
    let scope: String

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        try await simulation.clock.sleep(for: .seconds(1))
        return AccessToken("a token to \(scope)", lifetime: .seconds(3600), scope: scope)
    }
}
