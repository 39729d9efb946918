import Interleavings
import Testing

@Suite struct `A cancelled sleep` {
    @Test func `ends at once, whether cancelled before it, during it or when it is due`() async throws {
        let outcomes = Journal()
        let summary = try await explore(.exhaustive(), time: .anytime) { simulation in
            let sleeper = simulation.spawn("sleeper") {
                do {
                    try await simulation.clock.sleep(for: .seconds(9))
                    outcomes.note("slept")
                } catch {
                    try simulation.require(error is CancellationError, "cancelled")
                    outcomes.note(simulation.clock.now.offset == .zero ? "cancelled" : "cancelled late")
                }
            }
            simulation.spawn("canceller") { sleeper.cancel() }
        }
        #expect(summary.coverage.isAll)
        #expect(Set(outcomes.all) == ["slept", "cancelled"])
    }

    @Test func `leaves no timer behind`() async throws {
        try await explore(.exhaustive()) { simulation in
            let sleeper = simulation.spawn("sleeper") { try? await simulation.clock.sleep(for: .seconds(9)) }
            await Task.yield()
            sleeper.cancel()
            try await simulation.settle()
            try simulation.require(simulation.clock.now.offset == .zero, "nothing to wait for")
        }
    }

    @Test func `in a loop that ignores the cancellation is a livelock, not a hang`() async throws {
        let found = try await failure(.replay(""), stepLimit: 200) { simulation in
            let refresher = simulation.spawn("refresher") {
                while true { try? await simulation.clock.sleep(for: .seconds(1)) }
            }
            refresher.cancel()
        }
        #expect(found.problem?.code == .livelock)
        #expect(found.problem?.tasks.contains("refresher") == true)
    }

    @Test func `in a loop that ignores the cancellation doesn't keep an execution from ending`() async throws {
        try await explore(.random(schedules: 1)) { simulation in
            _ = Task(executorPreference: simulation.taskExecutor) {
                while true { try? await simulation.clock.sleep(for: .seconds(1)) }
            }
            try await simulation.settle(waitsForTimers: false)
        }
    }
}
