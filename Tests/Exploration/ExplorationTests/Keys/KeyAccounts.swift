import AccessTokens
import AccessTokensKeys
import Interleavings
import TokenServiceConcurrency

/// One scope of one account.
struct AccountKey: Hashable, Sendable, CustomStringConvertible {
    let account: String, scope: Int

    var description: String { "\(account)\(scope)" }

    static let all = ["a", "b"].flatMap { account in (1...2).map { AccountKey(account: account, scope: $0) } }
}

/// An authorization server that rotates refresh tokens and ends a session whose refresh token is presented twice, and records
/// what happened to the keys of two accounts.
final class KeyAccounts: Sendable {
    struct Ask: Sendable {
        let key: AccountKey, began: Int
        var ended: Int?
        var token: String?
    }

    struct Fence: Sendable {
        let account: String, began: Int
        var ended = Int.max
    }

    struct Facts: Sendable {
        var time = 0
        /// The valid refresh token of each session.
        var good: [String: String] = [:]
        /// When each session's refresh token was last presented.
        var presented: [String: Duration] = [:]
        /// The sessions with a load.
        var running: Set<String> = []
        /// When each access token's session began: its first load, or the end of its sign-in; and which key it is for.
        var issued: [String: (key: AccountKey, began: Int)] = [:]
        var asks: [Ask] = []
        var fences: [Fence] = []
        var problems: [String] = []
        var count = 0

        mutating func tick() -> Int {
            time += 1
            return time
        }
    }

    let simulation: Simulation
    /// Whether an account's keys use one refresh token.
    let sharesGrants: Bool
    /// Whether timers fire at any time, so that a load's answer may arrive when its service has forgotten the load, after 120 s
    /// (46).
    private let mayForget: Bool
    let facts = Lock(Facts())

    init(_ simulation: Simulation, sharesGrants: Bool = false, mayForget: Bool = false) {
        self.simulation = simulation
        self.sharesGrants = sharesGrants
        self.mayForget = mayForget
    }

    private func owner(of key: AccountKey) -> String { sharesGrants ? key.account : "\(key)" }

    /// The user of a key signs in.
    func signIn(_ services: TokenServices<AccountKey>, _ key: AccountKey) async {
        let token = session(for: key)
        // A concurrent sign-out may take effect first.
        facts.withLock { $0.issued[token.value]?.began = .max }
        await services[key].replace(with: token)
        facts.withLock { facts in
            let time = facts.tick()
            facts.issued[token.value]?.began = time
        }
    }

    /// A token of a new session.
    private func session(for key: AccountKey) -> AccessToken {
        facts.withLock { facts in
            facts.count += 1
            let name = "\(owner(of: key))#\(facts.count)"
            facts.good[name] = "\(name).0"
            facts.issued[name] = (key, facts.tick())
            return AccessToken(name, lifetime: .seconds(1_000), refreshToken: "\(name).0")
        }
    }

    /// Exchanges a refresh token; without one, the user signs in.
    func load(_ key: AccountKey, replacing previous: AccessToken?) async throws -> AccessToken {
        guard let spent = previous?.refreshToken else {
            let token = session(for: key)
            try await simulation.clock.sleep(for: .seconds(1))
            return token
        }
        let session = String(spent.prefix { $0 != "." }), now = simulation.clock.now.offset
        let next: AccessToken? = facts.withLock { facts in
            guard session.hasPrefix("\(owner(of: key))#") else {
                facts.problems.append("\(key) presents the refresh token of \(session)")
                return nil
            }
            guard facts.good[session] == spent else {
                let isForgotten = mayForget && facts.presented[session].map { now - $0 >= .seconds(120) } ?? false
                if !isForgotten { facts.problems.append("\(spent) is presented twice: the session is lost") }
                return nil
            }
            if facts.running.contains(session) { facts.problems.append("two loads of \(session) at once") }
            facts.running.insert(session)
            facts.presented[session] = now
            facts.count += 1
            let refreshToken = "\(session).\(facts.count)", name = "\(session)+\(facts.count)"
            facts.good[session] = refreshToken
            // A session is as old as its sign-in, whenever its tokens were rotated.
            facts.issued[name] = (key, facts.issued[session]?.began ?? facts.tick())
            return AccessToken(name, lifetime: .seconds(1_000), refreshToken: refreshToken)
        }
        try? await simulation.clock.sleep(for: .seconds(1))
        facts.withLock { _ = $0.running.remove(session) }
        guard let next else { throw LoadFailure(remedy: .signIn) }
        return next
    }

    /// Asks for a key's token and notes the answer.
    @discardableResult
    func ask(_ services: TokenServices<AccountKey>, _ key: AccountKey) async -> AccessToken? {
        let index = facts.withLock { facts in
            facts.asks.append(Ask(key: key, began: facts.tick()))
            return facts.asks.count - 1
        }
        let token = try? await services[key].retrieveToken()
        facts.withLock { facts in
            facts.asks[index].token = token?.value
            facts.asks[index].ended = facts.tick()
        }
        return token
    }

    /// Signs an account out and notes when.
    func signOut(_ services: TokenServices<AccountKey>, _ account: String) async {
        let index = facts.withLock { facts in
            facts.fences.append(Fence(account: account, began: facts.tick()))
            return facts.fences.count - 1
        }
        let change = await services.reset { $0.account == account }
        // A store that was too late may keep its token; the sign-out reported that.
        let isComplete = change.storeFailure == nil && change.changes.values.allSatisfy { $0.storeFailure == nil }
        facts.withLock { facts in
            if isComplete { facts.fences[index].ended = facts.tick() }
        }
    }

    /// The first promise that was broken.
    var violation: String? {
        let facts = facts.withLock { $0 }
        if let problem = facts.problems.first { return problem }
        for ask in facts.asks {
            guard let token = ask.token, let issued = facts.issued[token] else { continue }
            if issued.key != ask.key { return "\(ask.key) got \(issued.key)'s token" }
            for fence in facts.fences where fence.account == ask.key.account {
                if issued.began < fence.began, fence.ended < ask.began { return "\(ask.key) got \(token) after a sign-out" }
            }
        }
        return nil
    }
}
