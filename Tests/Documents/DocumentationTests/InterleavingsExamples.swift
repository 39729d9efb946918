import Interleavings
import InterleavingsTesting
import Synchronization
import Testing

// Every Swift block of the guides of `Interleavings`, as it stands there, run. `GuideTests` holds the two to each other.

private enum Racing {
    actor PriceCache {
        private var price: Int?
        private let fetch: @Sendable () async -> Int

        init(fetch: @escaping @Sendable () async -> Int) {
            self.fetch = fetch
        }

        func get() async -> Int {
            if let price { return price }
            let fetched = await fetch()
            price = fetched
            return fetched
        }
    }
}

private enum Mended {
    actor PriceCache {
        private var fetching: Task<Int, Never>?
        private let fetch: @Sendable () async -> Int
        private let executor: (any TaskExecutor)?

        init(executor: (any TaskExecutor)? = nil, fetch: @escaping @Sendable () async -> Int) {
            self.executor = executor
            self.fetch = fetch
        }

        func get() async -> Int {
            if let fetching { return await fetching.value }
            let task = Task(executorPreference: executor) { [fetch] in await fetch() }
            fetching = task
            return await task.value
        }
    }
}

private actor Counter {
    var value = 0

    func increment() {
        value += 1
    }
}

@Suite struct `The guides of Interleavings` {
    private typealias PriceCache = Racing.PriceCache

    @Test func `show a race, and its schedule again`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore { simulation in
                let fetches = Mutex(0)
                let cache = PriceCache {
                    fetches.withLock { $0 += 1 }
                    try? await simulation.clock.sleep(for: .seconds(1))
                    return 42
                }
                simulation.spawn("Anna") { await cache.get() }
                simulation.spawn("Ben") { await cache.get() }
                try await simulation.settle()
                try simulation.require(fetches.withLock { $0 } == 1, "one fetch for both")
            }
        }
        #expect(failure?.description.contains("one fetch for both") == true)
    }

    @Test func `show that it is mended`() async throws {
        typealias PriceCache = Mended.PriceCache
        let summary = try await explore(.exhaustive()) { simulation in
            let fetches = Mutex(0)
            let cache = PriceCache(executor: simulation.taskExecutor) {
                fetches.withLock { $0 += 1 }
                try? await simulation.clock.sleep(for: .seconds(1))
                return 42
            }
            simulation.spawn("Anna") { await cache.get() }
            simulation.spawn("Ben") { await cache.get() }
            try await simulation.settle()
            try simulation.require(fetches.withLock { $0 } == 1, "one fetch for both")
        }
        #expect(summary.isComplete)
    }

    @Test func `count increments`() async throws {
        try await explore { simulation in
            let counter = Counter()
            simulation.spawn("Anna") { await counter.increment() }
            simulation.spawn("Ben") { await counter.increment() }
            try await simulation.settle()
            try simulation.require(await counter.value == 2, "both count")
        }
    }

    @Test func `show a lost update between two accesses`() async throws {
        await #expect(throws: ScheduleFailure.self) {
            try await explore(.exhaustive(preemptions: 1), granularity: .accesses) { simulation in
                let account = Account()
                simulation.spawn("Anna") { account.deposit(50) }
                simulation.spawn("Ben") { account.deposit(100) }
                try await simulation.settle()
                try simulation.require(account.balance == 150, "no deposit is lost")
            }
        }
    }
}

// `@unchecked`, because that is the claim which is tested.
private final class Account: @unchecked Sendable {
    @Interleaved("balance") var balance = 0

    func deposit(_ amount: Int) {
        balance += amount
    }
}
