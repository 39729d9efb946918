import AccessTokens
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Guarantee 56: calls with demands, in orders chosen at random, beside calls without, refusals, limits, sign-outs and sign-ins.
@Suite(.exploring()) struct `Calls with demands` {
    @Test(arguments: [TimeModel.whenIdle, .anytime])
    func `56: each call is answered, an insisting one with no older load, and few loads are made`(time: TimeModel) async throws {
        try await explore(.mixed(schedules: .everyday(60, thorough: 3_000)), time: time) { simulation in
            let begun = Lock(0)
            let tokens = TokenService(
                environment: .driven(by: simulation.taskExecutor, clock: simulation.clock),
                isRepeatable: simulation.choose("repeatable", 2) == 1
            ) { _ in
                let number = begun.withLock { begun in
                    begun += 1
                    return begun
                }
                let latency = simulation.choose("latency of \(number)", among: [Duration.zero, .seconds(1), .seconds(40)])
                try await simulation.clock.sleep(for: latency ?? .zero)
                if simulation.choose("result of \(number)", 3) == 0 { throw LoadFailure(remedy: .retry) }
                return AccessToken("\(number)", lifetime: .seconds(simulation.choose("life", 2) == 0 ? 60 : 3_600))
            }
            let answered = Lock(0), signedOutAfter = Lock(0)
            for number in 1...4 {
                let kind = simulation.choose("kind of \(number)", 5)
                let limit: Duration? = simulation.choose("limit of \(number)", 4) == 0 ? .seconds(2) : nil
                simulation.spawn("caller \(number)") {
                    try? await simulation.clock.sleep(for: .seconds(20 * simulation.choose("start", 3)))
                    let before = begun.withLock(\.self), ended = signedOutAfter.withLock(\.self)
                    let token: AccessToken? =
                        switch kind {
                        case 0: try? await tokens.retrieveToken(within: limit)
                        case 1: try? await tokens.retrieveToken(validFor: .seconds(45), within: limit)
                        case 2: try? await tokens.reloadToken(within: limit)
                        case 3:
                            if let refused = try? await tokens.retrieveToken(within: limit) {
                                try? await tokens.retrieveToken(insteadOf: refused, within: limit)
                            } else {
                                nil
                            }
                        default: try? await tokens.retrieveToken(validFor: .seconds(100_000), within: limit)
                        }
                    answered.withLock { $0 += 1 }
                    guard let token, let load = Int(token.value) else { return }
                    try simulation.require(kind != 2 || load > before, "\(load) began before the call that insists on a load")
                    try simulation.require(load > ended, "\(load) is of a session that had ended before the call")
                    if simulation.choose("refused", 3) == 0 { await tokens.invalidate(token) }
                }
            }
            simulation.spawn("user") {
                let act = simulation.choose("act", 4)
                try? await simulation.clock.sleep(for: .seconds(simulation.choose("stay", 3)))
                let last = begun.withLock(\.self)
                if act == 1 || act == 2 {
                    _ = await tokens.reset()
                    signedOutAfter.withLock { $0 = last }
                }
                // A sign-in's token is newer than each load's.
                if act > 1 { await tokens.replace(with: AccessToken("1000", lifetime: .seconds(60))) }
            }
            try await simulation.settle()
            try simulation.require(answered.withLock(\.self) == 4, "a call was never answered")
            // A call makes its own load, perhaps after one that came too early, and refreshes ahead come beside them.
            try simulation.require(begun.withLock(\.self) <= 16, "\(begun.withLock(\.self)) loads")
        }
    }
}
