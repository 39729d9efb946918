import Interleavings
import Synchronization

// Programs with one race each, and with a harmless task that runs in between. The line that reports must name is marked.

/// A program, the functions that its report must name, and the harmless task.
struct BrokenProgram: Sendable, CustomStringConvertible {
    let description: String
    /// The suspended function, and what the other task did meanwhile.
    let suspended: String
    let meanwhile: String
    let bystanders: [String]
    let scenario: @Sendable (Simulation) async throws -> Void

    static let all = [price, score, lateLookers, till, session]

    static let price = BrokenProgram(
        description: "an actor that checks, awaits and sets", suspended: "PriceCache.get()",
        meanwhile: "'Ben' ran the same function on the same PriceCache.", bystanders: ["Cleo", "Dora"]
    ) { simulation in
        let fetches = Mutex(0)
        let cache = PriceCache {
            fetches.withLock { $0 += 1 }
            try? await simulation.clock.sleep(for: .seconds(1))
            return 42
        }
        simulation.spawn("Cleo") { await cache.look() }
        simulation.spawn("Anna") { await cache.get() }
        simulation.spawn("Dora") { await cache.looks }
        simulation.spawn("Ben") { await cache.get() }
        try await simulation.settle()
        try simulation.require(fetches.withLock { $0 } == 1, "one fetch for both")
    }

    static let score = BrokenProgram(
        description: "a class that unlocks before it awaits", suspended: "Score.add()",
        meanwhile: "'Ben' ran the same function.", bystanders: ["Cleo"]
    ) { simulation in
        let score = Score()
        simulation.spawn("Anna") { await score.add() }
        simulation.spawn("Cleo") { await score.look() }
        simulation.spawn("Ben") { await score.add() }
        try await simulation.settle()
        try simulation.require(score.points.withLock { $0 } == 2, "both add a point")
    }

    static let lateLookers = BrokenProgram(
        description: "a class, before an actor is crossed that other schedules seldom use", suspended: "Score.add()",
        meanwhile: "'Ben' ran the same function.", bystanders: ["Cleo", "Dora"]
    ) { simulation in
        let score = Score()
        simulation.spawn("Anna") { await score.add() }
        simulation.spawn("Ben") { await score.add() }
        try await simulation.settle()
        if simulation.choose("lookers", 40) == 0 {
            let cache = PriceCache {
                try? await simulation.clock.sleep(for: .seconds(1))
                return 42
            }
            for name in ["Cleo", "Dora"] { simulation.spawn(name) { await cache.get() } }
            try await simulation.settle()
        }
        try simulation.require(score.points.withLock { $0 } == 2, "both add a point")
    }

    static let till = BrokenProgram(
        description: "an actor that asks another one twice", suspended: "Till.pay(_:)",
        meanwhile: "'Ben' ran the same function on the same Account.", bystanders: ["Cleo"]
    ) { simulation in
        let account = Account()
        let till = Till(account)
        simulation.spawn("Anna") { await till.pay(80) }
        simulation.spawn("Cleo") { await account.balance }
        simulation.spawn("Ben") { await till.pay(80) }
        try await simulation.settle()
        try simulation.require(await account.balance >= 0, "the account is not overdrawn")
    }

    static let session = BrokenProgram(
        description: "a token service that a sign-out finds loading", suspended: "Tokens.get()",
        meanwhile: "'sign-out' called the same Tokens at InterleavingsEverythingTests/BrokenPrograms.swift:",
        bystanders: ["reader"]
    ) { simulation in
        let tokens = Tokens {
            try await simulation.clock.sleep(for: .seconds(1))
            return "token"
        }
        simulation.spawn("load") { try await tokens.get() }
        simulation.spawn("reader") { await tokens.hit() }
        simulation.spawn("sign-out") {
            try await simulation.clock.sleep(for: .milliseconds(500))
            await tokens.signOut()
        }
        try await simulation.settle()
        try simulation.require(await tokens.token == nil, "no token is left after a sign-out")
    }
}

private actor PriceCache {
    private(set) var looks = 0
    private var price: Int?
    private let fetch: @Sendable () async -> Int

    init(fetch: @escaping @Sendable () async -> Int) {
        self.fetch = fetch
    }

    func get() async -> Int {
        if let price { return price }
        let fetched = await fetch()  // PriceCache.get() is crossed here
        price = fetched
        return fetched
    }

    func look() async {
        looks += 1
        await Task.yield()
        looks += 1
    }
}

private final class Score: Sendable {
    let points = Mutex(0)

    func add() async {
        let before = points.withLock { $0 }
        await Task.yield()  // Score.add() is crossed here
        points.withLock { $0 = before + 1 }
    }

    func look() async -> Int {
        await Task.yield()
        return points.withLock { $0 }
    }
}

private actor Account {
    private(set) var balance = 100

    func withdraw(_ amount: Int) { balance -= amount }
}

private actor Till {
    private let account: Account

    init(_ account: Account) {
        self.account = account
    }

    func pay(_ amount: Int) async {
        guard await account.balance >= amount else { return }  // Till.pay(_:) is crossed here
        await account.withdraw(amount)
    }
}

private actor Tokens {
    private(set) var token: String?
    private var hits = 0
    private let load: @Sendable () async throws -> String

    init(load: @escaping @Sendable () async throws -> String) {
        self.load = load
    }

    func get() async throws -> String {
        if let token { return token }
        let loaded = try await load()  // Tokens.get() is crossed here
        token = loaded
        return loaded
    }

    func hit() { hits += 1 }

    func signOut() { token = nil }
}

/// Fetches in a separate function, which has no bug.
actor Vault {
    private var secret: Int?
    private(set) var fetches = 0

    func get() async -> Int {
        if let secret { return secret }
        let fetched = await fetch()  // Vault.get() is crossed here
        secret = fetched
        return fetched
    }

    private func fetch() async -> Int {
        fetches += 1
        let number = fetches
        await Task.yield()
        return number
    }
}
