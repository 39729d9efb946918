import AccessTokens
import AccessTokensKeys
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing

/// Guarantees 20 to 25: callers, cancellations, sign-outs of accounts, sign-ins, refusals, evictions and new services, in orders
/// chosen at random.
@Suite(.exploring()) struct `Keys under mixed schedules` {
    @Test(arguments: [TimeModel.whenIdle, .anytime], [false, true])
    func `no grant is lost, no sign-out undone, and no key gets another's token`(
        time: TimeModel, sharesGrants: Bool
    ) async throws {
        try await explore(.mixed(schedules: .everyday(40, thorough: 5_000)), time: time) { simulation in
            let limit = simulation.choose("idle services kept", 3)
            let accounts = KeyAccounts(simulation, sharesGrants: sharesGrants, mayForget: time == .anytime)
            // If timers fire at any time, a save may take effect after 95 s, when it counts as lost (46), and overwrite what
            // another service of the key has saved.
            let stores =
                time == .whenIdle && simulation.choose("stores", 2) == 0 ? InMemoryTokenStores<AccountKey>() : nil
            let services = TokenServices<AccountKey>(
                keepingIdle: limit, grant: sharesGrants ? Self.keeper : nil, stores: stores,
                environment: .driven(by: simulation.taskExecutor, clock: simulation.clock)
            ) { key, previous in try await accounts.load(key, replacing: previous) }
            for number in 1...4 {
                let caller = simulation.spawn("caller \(number)") { await Self.act(number, accounts, services) }
                if simulation.choose("caller \(number) is cancelled", 4) == 3 {
                    simulation.spawn("canceller \(number)") { caller.cancel() }
                }
            }
            try await simulation.settle()
            try simulation.require(accounts.violation == nil, accounts.violation ?? "")
            let counts = services.counts
            try simulation.require(counts.idle <= limit, "\(counts) of at most \(limit)")
            for key in AccountKey.all {
                // A key that is signed in is served from memory, from its store or by the server.
                await accounts.ask(services, key)
                try simulation.require(accounts.violation == nil, accounts.violation ?? "")
            }
        }
    }

    @Test func `45: a key that drains and resumes at once behaves like one made afterwards`() async throws {
        try await explore(.mixed(schedules: .everyday(60, thorough: 2_000)), time: .whenIdle) { simulation in
            let services = TokenServices<Int>(
                environment: .driven(by: simulation.taskExecutor, clock: simulation.clock)
            ) { key, _ in AccessToken("token \(key)") }
            _ = services[1]
            simulation.spawn("drain") { await services.drain(within: .seconds(1)) }
            simulation.spawn("resume") { await services.resume() }
            try await simulation.settle()
            func loads(_ key: Int) async -> Bool { (try? await services[key].retrieveToken()) != nil }
            let (old, new) = (await loads(1), await loads(2))
            try simulation.require(old == new, "the old key loads: \(old), the new one: \(new)")
        }
    }

    /// Returns the key that keeps the refresh token of an account.
    private static let keeper: @Sendable (AccountKey) -> AccountKey = { AccountKey(account: $0.account, scope: 0) }

    /// Performs three typical operations of a program on its accounts.
    private static func act(_ number: Int, _ accounts: KeyAccounts, _ services: TokenServices<AccountKey>) async {
        let simulation = accounts.simulation
        for turn in 1...3 {
            guard let key = simulation.choose("caller \(number)'s key in turn \(turn)", among: AccountKey.all) else { return }
            switch simulation.choose("caller \(number), turn \(turn)", 9) {
            case 0...3: await accounts.ask(services, key)
            case 4:
                if let token = await accounts.ask(services, key) { await services[key].invalidate(token) }
            case 5: await accounts.signOut(services, key.account)
            case 6: await accounts.signIn(services, key)
            case 7: _ = services[key]
            default: try? await simulation.clock.sleep(for: .seconds(1_000))
            }
        }
    }
}
