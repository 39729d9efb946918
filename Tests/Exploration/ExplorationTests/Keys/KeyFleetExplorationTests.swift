import AccessTokens
import AccessTokensKeys
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Guarantees 22, 24, 30 and 34: processes that share a record for each of three keys, two of one account, with loads, sign-outs of
/// that account, services that are released, and a process that is killed; the orders are random.
@Suite(.exploring()) struct `Keys that processes share under mixed schedules` {
    @Test(arguments: [nil, Duration.seconds(10)])
    func `no key gets another's token, no session is lost without a reason, and a sign-out holds in every process`(
        checkEvery: Duration?
    ) async throws {
        try await explore(.mixed(schedules: .everyday(20, thorough: 3_000)), time: .whenIdle, stepLimit: 50_000) { simulation in
            let fleet = KeyFleet(simulation)
            let limit = simulation.choose("idle services kept", 3)
            // A process that started earlier, and one that starts at the end.
            let late = fleet.services(of: 2, keepingIdle: limit, checkEvery: checkEvery)
            for key in KeyFleet.keys { await late[key].replace(with: fleet.signIn(key)) }
            let processes = (1...2).map { simulation.process("process \($0)") }
            let tables = processes.indices.map { fleet.services(of: $0, keepingIdle: limit, checkEvery: checkEvery) }
            for (index, process) in processes.enumerated() {
                for caller in 1...2 {
                    process.spawn("caller \(index + 1).\(caller)") {
                        for turn in 1...3 { await Self.act(index, "\(index + 1).\(caller), turn \(turn)", fleet, tables[index]) }
                    }
                }
            }
            if let victim = simulation.choose("who is killed", among: [nil, 0, 1] as [Int?]) ?? nil {
                simulation.spawn("system") {
                    // An exchange takes two seconds; the swaps before and after it take no time.
                    await fleet.exchanges.wait(for: 1 + simulation.choose("exchange", 4))
                    try await simulation.clock.sleep(for: .milliseconds(500 * simulation.choose("when", 5)))
                    fleet.state.withLock { _ = $0.killed.insert(victim) }
                    processes[victim].kill()
                }
            }
            try await simulation.settle()
            fleet.exchanges.endWaits()
            try await simulation.settle()
            try await Self.judge(fleet, processes, tables, late: late, checkEvery: checkEvery)
        }
    }

    /// Performs three typical operations of a program on its accounts.
    private static func act(_ index: Int, _ turn: String, _ fleet: KeyFleet, _ services: TokenServices<AccountKey>) async {
        let simulation = fleet.simulation
        guard let key = simulation.choose("key of \(turn)", among: KeyFleet.keys) else { return }
        switch simulation.choose(turn, 8) {
        case 0...2: await fleet.ask(services, key, in: index)
        case 3:
            if let token = await fleet.ask(services, key, in: index) { await services[key].invalidate(token) }
        case 4: await fleet.signOut(services, in: index)
        default: try? await simulation.clock.sleep(for: .seconds(560))
        }
    }

    /// Checks what the remaining processes get at the end.
    private static func judge(
        _ fleet: KeyFleet, _ processes: [SimulatedProcess], _ tables: [TokenServices<AccountKey>],
        late: TokenServices<AccountKey>, checkEvery: Duration?
    ) async throws {
        let simulation = fleet.simulation
        let killed = fleet.state.withLock { $0.killed }
        if fleet.state.withLock({ $0.signedOut != nil }) {
            try await simulation.clock.sleep(for: checkEvery ?? KeyFleet.lifetime)
            for (index, table) in tables.enumerated() where !killed.contains(index) {
                processes[index].spawn("last caller \(index + 1)") {
                    // If there is an interval, the first caller after it starts the check that ends the session.
                    for key in KeyFleet.keys { _ = try? await table[key].retrieveToken() }
                    try? await simulation.clock.sleep(for: .seconds(5))
                }
            }
            try await simulation.settle()
            for (index, table) in tables.enumerated() where !killed.contains(index) {
                for key in KeyFleet.keys where key.account == "a" {
                    let token = table[key].cachedToken
                    try simulation.require(token == nil, "process \(index + 1) keeps \(token?.value ?? "") after the sign-out")
                }
            }
        }
        // A dead holder's mark is respected for two minutes, in which the other processes' tokens expire.
        try await simulation.clock.sleep(for: .seconds(1_000))
        for key in KeyFleet.keys {
            var token: AccessToken?
            for _ in 1...4 where token == nil {
                token = await fleet.ask(late, key, in: 2)
                try await simulation.clock.sleep(for: .seconds(100))
            }
            let (state, isMeant) = (fleet.state.withLock { $0 }, key.account == "a")
            if let problem = state.problems.first { try simulation.require(false, problem) }
            if isMeant, state.signedOut != nil { try simulation.require(token == nil, "\(key) is signed out") }
            let mayEnd = isMeant && state.isSigningOut || state.sessions[key]?.isLost ?? false
            try simulation.require(token != nil || mayEnd, "the session of \(key) goes on")
        }
    }
}
