import AccessTokens
import AccessTokensTesting
import Interleavings

extension Exhibit {
    static let sixteen = Exhibit(
        16, "A continuation is resumed twice", source: "okta-mobile-swift#170", time: .anytime,
        broken: { simulation in
            let loader = simulation.server(latency: latency).loader
            let service = DoublyAnsweringTokenService(
                loader: simulation.narrated(loader), clock: simulation.clock, limit: limit,
                executor: simulation.taskExecutor
            ) { number, result in
                let text =
                    switch result {
                    case .success(let token): token.value
                    case .failure(let error): "\(error)"
                    }
                simulation.log("answer \(number): \(text)", by: "service")
                try? simulation.require(number == 1, "a caller is answered once")
            }
            try await answerAtTheLimit(simulation) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let loader = simulation.server(latency: latency).loader
            let service = simulation.service(policy: RefreshPolicy(loadTimeout: limit), loader: loader)
            try await answerAtTheLimit(simulation) { try await service.retrieveToken() }
        })

    private static let limit = Duration.seconds(30)
    private static let latency = Duration.seconds(29)

    /// The answer comes just before the limit, on a machine that may be busy.
    private static func answerAtTheLimit(
        _ simulation: Simulation, _ retrieve: @escaping @Sendable () async throws -> AccessToken
    ) async throws {
        simulation.spawn("caller") { _ = try await simulation.ask(retrieve) }
        try await simulation.settle()
    }
}
