import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing

/// Random programs of callers over the service and the shim, under random schedules.
///
/// `INTERLEAVINGS_SCHEDULES` sets how many schedules run in each time model, `INTERLEAVINGS_SEED` where they begin.
@Suite(.exploring()) struct `Mixed programs under mixed schedules` {
    @Test(arguments: [TimeModel.whenIdle, .anytime]) func `mixed programs break no guarantee`(time: TimeModel) async throws {
        let summary = try await explore(.mixed(schedules: .everyday(50, thorough: 500)), time: time) { simulation in
            try await MixedScenario.run(simulation, isPunctual: time == .whenIdle)
        }
        #expect(summary.schedules > 0)
    }
}
