import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// The keys on real threads: callers, refusals, sign-outs of accounts, services that are created and released, all at once.
@Suite("Guarantees 20–25 on real threads", .tags(.threads), .timeLimit(.minutes(10))) struct KeyStormTests {
    /// An authorization server with a session for each key, which ends when its refresh token is presented twice.
    private final class Server: Sendable {
        let sessions = Lock<[Int: (good: String, count: Int)]>([:])
        let lost = Log<String>()

        func load(_ key: Int, replacing previous: AccessToken?) async throws -> AccessToken {
            if key % 2 == 0 { await Task.yield() }
            if key % 100 == 7 { throw ScriptedFailure.transient }
            return sessions.withLock { sessions in
                var session = sessions[key] ?? ("", 0)
                if let spent = previous?.refreshToken, spent != session.good {
                    lost.append("key \(key) presents \(spent), not \(session.good)")
                }
                session.count += 1
                session.good = "\(key):\(session.count)"
                sessions[key] = session
                return AccessToken("\(key):\(session.count)", lifetime: .seconds(3_600), refreshToken: session.good)
            }
        }
    }

    @Test func `a storm over many keys loses no grant and mixes up no keys`() async {
        let server = Server(), stores = InMemoryTokenStores<Int>(), wrong = Log<String>()
        let services = TokenServices<Int>(keepingIdle: 50, stores: stores) { key, previous in
            try await server.load(key, replacing: previous)
        }
        let keys = Int.everyday(500, thorough: 10_000)
        await withDiscardingTaskGroup { group in
            for worker in 0..<8 {
                group.addTask {
                    var random = SplitMix64(seed: UInt64(worker))
                    for _ in 0..<(keys * 2) {
                        let key = random.below(keys)
                        guard random.below(1_000) > 0 else {
                            let account = random.below(20)
                            _ = await services.reset { $0 % 20 == account }
                            continue
                        }
                        let service = services[key]
                        guard let token = try? await service.retrieveToken() else { continue }
                        if !token.value.hasPrefix("\(key):") { wrong.append("key \(key) got \(token.value)") }
                        if random.below(20) == 0 { await service.invalidate(token) }
                    }
                }
            }
        }
        #expect(wrong.entries.isEmpty && server.lost.entries.isEmpty, "\(wrong.entries.first ?? server.lost.entries.first ?? "")")
        // A load's task may retain its service for a moment after its callers have their answer.
        while services.counts.released > 0 { await Task.yield() }
        #expect(services.counts.idle <= 50, "\(services.counts)")
    }

    @Test func `all who ask for a key at the same moment get the same service`() async {
        for round in 0..<Int.everyday(200, thorough: 2_000) {
            let services = TokenServices<Int>(keepingIdle: round % 3) { _, _ in .hour("a") }
            let found = await withTaskGroup { group in
                for number in 0..<8 { group.addTask { (number % 2, services[number % 2]) } }
                return await group.reduce(into: [0: [], 1: []]) { $0[$1.0]?.append($1.1) }
            }
            for services in found.values { #expect(services.allSatisfy { $0 === services[0] }) }
        }
    }
}
