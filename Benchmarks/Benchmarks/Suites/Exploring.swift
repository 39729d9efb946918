import AccessTokens
import Interleavings

extension Suite {
    /// How many schedules the explorer runs in a second, and what it keeps of them.
    static func exploring(_ effort: Effort) async throws -> [Table] {
        var table = Table(id: "explorer", title: "Schedules explored in a second, one exploration")
        let schedules = effort.isQuick ? 2_000 : 20_000
        for callers in [2, 4, 8] {
            try await add("\(callers) callers of a TokenService", shared(callers), schedules, effort, to: &table)
        }
        try await add("2 tasks of 2 jobs each", bare, schedules, effort, to: &table)
        var memory = Table(id: "explorer-memory", title: "Memory that the explorer keeps")
        let many = effort.isQuick ? 20_000 : 1_000_000
        try await explore(.random(schedules: 1_000), bare)
        if let kept = try await Allocations.counted(during: { try await explore(.random(schedules: many), bare) }) {
            memory.add(
                "after \(many) schedules more",
                .init(column: "kept", value: Sample(exactly: Double(kept.bytes) / 1024), unit: .kibibytes))
        }
        return memory.rows.isEmpty ? [table] : [table, memory]
    }

    private static func add(
        _ name: String, _ scenario: @escaping @Sendable (Simulation) async throws -> Void, _ schedules: Int,
        _ effort: Effort, to table: inout Table
    ) async throws {
        var rates: [Double] = []
        var steps = 0.0
        for round in 0...(effort.isQuick ? 3 : 7) {
            let start = ContinuousClock.now
            let summary = try await explore(.random(schedules: schedules, seed: UInt64(round)), scenario)
            rates.append(Double(schedules) / (start.duration(to: .now) / .seconds(1)))
            steps = Double(summary.steps) / Double(summary.schedules)
        }
        table.add(
            name, .init(column: "schedules", value: Sample(Array(rates.dropFirst())), unit: .perSecond),
            .init(column: "steps in each", value: Sample(exactly: (steps * 10).rounded() / 10), unit: .each))
    }

    private static func shared(_ callers: Int) -> @Sendable (Simulation) async throws -> Void {
        { simulation in
            let service = TokenService(
                environment: .driven(by: simulation.taskExecutor, clock: simulation.clock, seed: 1),
                loader: { _ in
                    try await simulation.clock.sleep(for: .seconds(1))
                    return AccessToken("token", lifetime: .seconds(3600))
                })
            for caller in 1...callers { simulation.spawn("caller \(caller)") { _ = try await service.retrieveToken() } }
            try await simulation.settle()
        }
    }

    @Sendable private static func bare(_ simulation: Simulation) async throws {
        for name in ["a", "b"] { simulation.spawn(name) { await Task.yield() } }
        try await simulation.settle()
    }
}
