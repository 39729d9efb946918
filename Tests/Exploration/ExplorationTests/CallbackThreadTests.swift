import AccessTokens
import AccessTokensDispatch
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing

/// Callers of one shim on several threads, which may be interrupted at each reading of the clock: between reading the token and
/// acting on it.
@Suite(.exploring()) struct `Callbacks on several threads` {
    @Test func `after a refusal no later call gets the refused token`() async throws {
        let summary = try await explore(.exhaustive(preemptions: .everyday(1, thorough: 2)), granularity: .accesses) {
            simulation in
            let program = CallbackProgram(simulation, isConcurrent: false)
            let old = AccessToken("0", lifetime: .seconds(3600))
            await program.service.replace(with: old)
            let thread = CallbackProgram.Thread(name: "a", program: program)
            simulation.spawn("a") {
                thread.refuse(old)
                thread.ask()
            }
            try await simulation.settle()
            try thread.check(isPunctual: true)
        }
        #expect(summary.coverage.isAllWithinBounds && summary.schedules > 50)
    }

    @Test(arguments: [TimeModel.whenIdle, .anytime])
    func `callbacks from several threads keep order, limits and fences, and each is called once`(time: TimeModel) async throws {
        try await explore(.mixed(schedules: .everyday(40, thorough: 1_000)), time: time, granularity: .accesses) { simulation in
            let program = CallbackProgram(simulation, isConcurrent: simulation.choose("concurrent queue", 2) == 1)
            let threads = (1...(1 + simulation.choose("threads", 3))).map { number in
                CallbackProgram.Thread(name: "thread \(number)", program: program)
            }
            for thread in threads { simulation.spawn(thread.name) { try await thread.act() } }
            try await simulation.settle()
            for thread in threads { try thread.check(isPunctual: time == .whenIdle) }
        }
    }
}
