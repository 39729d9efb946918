import AccessTokens
import AccessTokensKeys
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Callers of two keys of one account, whose services are released whenever they are idle, and a history for each key.
private final class KeyCrowd: Sendable {
    let simulation: Simulation
    let histories = [History(OneTokenAtATime()), History(OneTokenAtATime())]
    /// How many loads of each key have begun.
    private let loads = Lock([0, 0])

    init(_ simulation: Simulation) {
        self.simulation = simulation
    }

    func load(_ key: Int) async throws -> AccessToken {
        let number = loads.withLock { loads in
            loads[key] += 1
            return loads[key]
        }
        let fails = simulation.choose("load \(number) of key \(key) fails", 4) == 3
        try await simulation.clock.sleep(for: .seconds(1))
        if fails { throw LoadFailure(remedy: .retry) }
        return AccessToken("\(number)", lifetime: nil, refreshToken: "\(key)")
    }

    func act(as caller: String, on services: TokenServices<Int>) async {
        for turn in 1...3 {
            let key = simulation.choose("\(caller)'s key in turn \(turn)", 2), before = loads.withLock { $0 }
            switch simulation.choose("\(caller), turn \(turn)", 7) {
            case 0...3: _ = await retrieve(key, as: caller, from: services)
            case 4:
                guard let token = await retrieve(key, as: caller, from: services) else { break }
                await record(caller, .invalidate(Int(token.value) ?? 0), key) { await services[key].invalidate(token) }
            case 5:
                let token = AccessToken("\(-turn)", lifetime: nil, refreshToken: "\(key)")
                await record(caller, .replace(with: -turn, loadsBefore: before[key]), key) {
                    await services[key].replace(with: token)
                }
            default:
                // Each key's own history has the sign-out: it takes effect in each at some moment of the call.
                await record(caller, .reset(loadsBefore: before[0]), 0) {
                    await self.record(caller, .reset(loadsBefore: before[1]), 1) { _ = await services.reset { _ in true } }
                }
            }
        }
    }

    private func retrieve(_ key: Int, as caller: String, from services: TokenServices<Int>) async -> AccessToken? {
        var token: AccessToken?
        await histories[key].record(caller, .retrieve(expired: 0)) {
            await .retrieving(&token, expired: { 0 }) { try await services[key].retrieveToken() }
        }
        return token
    }

    private func record(
        _ caller: String, _ operation: OneTokenAtATime.Operation, _ key: Int, _ body: () async -> Void
    ) async {
        await histories[key].record(caller, operation) {
            await body()
            return .done
        }
    }
}

@Suite(.exploring()) struct `Keys as their callers see them` {
    @Test(arguments: [0, 1]) func `each key's answers to its callers are linearizable`(limit: Int) async throws {
        // A store that exceeds its limit may have an unexpected token, so time moves only when nothing else can run.
        try await explore(.mixed(schedules: .everyday(60, thorough: 2_000)), time: .whenIdle) { simulation in
            let crowd = KeyCrowd(simulation)
            let services = TokenServices<Int>(
                keepingIdle: limit, stores: InMemoryTokenStores(),
                environment: .driven(by: simulation.taskExecutor, clock: simulation.clock)
            ) { key, _ in try await crowd.load(key) }
            for number in 1...3 {
                let caller = simulation.spawn("caller \(number)") { await crowd.act(as: "caller \(number)", on: services) }
                if simulation.choose("caller \(number) is cancelled", 5) == 4 {
                    simulation.spawn("canceller \(number)") { caller.cancel() }
                }
            }
            try await simulation.settle()
            for history in crowd.histories { try history.requireLinearizable() }
        }
    }
}
