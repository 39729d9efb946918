import TokenServiceConcurrency

@testable import Interleavings

/// Small programs with one race each, for diagrams.
enum Races {
    /// Two threads add to a variable that nothing protects.
    @Sendable static func lostUpdate(_ simulation: Simulation) async throws {
        let account = Account()
        let deposits = [10, 5].map { amount in
            simulation.spawn("deposit \(amount)") { account.balance += amount }
        }
        for deposit in deposits { try await deposit.value }
        let final = account.balance
        try simulation.require(final == 15, "the balance is \(final), not 15")
    }

    /// Two locks, taken in either order.
    @Sendable static func lockOrder(_ simulation: Simulation) async throws {
        let (cache, store) = (InterleavedLock("cache"), InterleavedLock("store"))
        simulation.spawn("reader") { cache.withLock { store.withLock { simulation.log("fills the cache") } } }
        simulation.spawn("writer") { store.withLock { cache.withLock { simulation.log("empties the cache") } } }
    }

    /// A message that is sent between the check and the wait does not wake the waiter.
    @Sendable static func lostWakeUp(_ simulation: Simulation) async throws {
        let mailbox = Mailbox(on: simulation.actorExecutor("mailbox"))
        simulation.spawn("waiter") {
            if await mailbox.isEmpty { await mailbox.wait() }
        }
        simulation.spawn("sender") {
            await mailbox.send()
        }
    }

    /// A load that began before the sign-out ends after it, and its token is kept.
    @Sendable static func undoneSignOut(_ simulation: Simulation) async throws {
        let session = Session()
        let load = simulation.spawn("load") {
            simulation.log("asks the server")
            try await simulation.clock.sleep(for: .seconds(1))
            await session.keep("token")
            simulation.log("keeps the token")
        }
        let signOut = simulation.spawn("sign-out") {
            try await simulation.clock.sleep(for: .seconds(simulation.choose("seconds until sign-out", 3)))
            await session.clear()
            simulation.log("clears the session")
        }
        try await load.value
        try await signOut.value
        try simulation.require(await session.token == nil, "no token is left after a sign-out")
    }

    /// A block on one queue checks a value that another block changes before it acts.
    @Sendable static func overdraft(_ simulation: Simulation) async throws {
        let account = Lock(100)
        let (network, state) = (simulation.concurrentQueue("network"), simulation.serialQueue("state"))
        for amount in [80, 50] {
            state.async {
                guard account.withLock({ $0 }) >= amount else { return simulation.log("has not \(amount)") }
                simulation.log("has \(amount)")
                network.async {
                    simulation.log("pays \(amount)", by: "network")
                    state.async {
                        account.withLock { $0 -= amount }
                        simulation.log("books \(amount)")
                    }
                }
            }
        }
        try await simulation.settle()
        try simulation.require(account.withLock { $0 } >= 0, "the account is not overdrawn")
    }

    /// Six callers of a naive cache, which must load once.
    @Sendable static func sixCallers(_ simulation: Simulation) async throws {
        try await naiveCallers(6, simulation)
    }
}

/// Nothing protects its balance.
final class Account: @unchecked Sendable {
    // The account is used only in explorations, where one thread runs at a time.
    @Interleaved("balance") var balance = 0
}

/// Keeps handlers that nothing protects.
final class Desk {
    @Interleaved("handlers") var handlers: [(Int) -> Void] = []
}

/// Forgets a message that no task waits for.
actor Mailbox {
    private var waiter: CheckedContinuation<Void, Never>?
    private var message = false
    private let executor: any SerialExecutor

    init(on executor: any SerialExecutor) {
        self.executor = executor
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    var isEmpty: Bool {
        Simulation.current?.log(message ? "there is a message" : "there is no message")
        return !message
    }

    func wait() async {
        Simulation.current?.log("waits for a message")
        await withCheckedContinuation { waiter = $0 }
    }

    func send() {
        message = true
        Simulation.current?.log(waiter == nil ? "finds no waiter" : "wakes the waiter")
        waiter?.resume()
        waiter = nil
    }
}

actor Session {
    private(set) var token: String?

    func keep(_ token: String) { self.token = token }
    func clear() { token = nil }
}
