import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing

/// Programs of callers over the service and the shim that are drawn at random, under random schedules.
///
/// `INTERLEAVINGS_SCHEDULES` sets how many schedules run in each time model, and `INTERLEAVINGS_SEED` their seed.
@Suite(.exploring()) struct `Mixed programs under mixed schedules` {
    @Test(arguments: [TimeModel.whenIdle, .anytime]) func `mixed programs break no guarantee`(time: TimeModel) async throws {
        let summary = try await exploreOperations(
            MixedScenario.acts, programs: .random(.everyday(12, thorough: 125), tasks: 2...6, operationsPerTask: 1...4),
            schedules: .mixed(schedules: 8), time: time
        ) { simulation in
            MixedScenario(simulation)
        } perform: { scenario, act, caller in
            try await scenario.perform(act, as: caller)
        } check: { scenario in
            try await scenario.check(isPunctual: time == .whenIdle)
        }
        #expect(!summary.programs.isEmpty)
    }
}
