import AccessTokens
import BenchmarkSubjects
import Synchronization

extension Suite {
    /// Many callers' requests are refused with the same token at once, and each asks for another token.
    static func storm(_ effort: Effort) async throws -> [Table] {
        var table = Table(id: "storm", title: "401 storm: each caller invalidates one token and retrieves the next")
        for callers in [100, 1_000, 10_000] {
            let loads = Atomic(0), rounds = min(max(100_000 / callers, 3), effort.rounds)
            var results: [Double] = []
            for _ in 0...rounds {
                let service = TokenService { _ in AccessToken("token \(loads.add(1, ordering: .relaxed).newValue)") }
                let refused = try await service.retrieveToken()
                let duration = try await timed {
                    try await grouped(callers) {
                        await service.invalidate(refused)
                        use(try await service.retrieveToken())
                    }
                }
                results.append(duration / .nanoseconds(callers))
            }
            // The first round warms up; the load of each service's first token is not the storm's.
            let stormLoads = Double(loads.load(ordering: .relaxed)) / Double(rounds + 1) - 1
            table.add(
                "\(callers)", .init(column: "each", value: Sample(Array(results.dropFirst())), unit: .nanoseconds),
                .init(column: "loads in a storm", value: Sample(exactly: stormLoads), unit: .each))
        }
        return [table]
    }
}
