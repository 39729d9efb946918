import Interleavings
import InterleavingsEverything
import Synchronization
import Testing

// The Swift blocks of the landing page of `InterleavingsEverything`, as they stand there, run.

actor PriceCache {
    private let fetch: @Sendable () async -> Int
    private var price: Int?

    init(fetch: @escaping @Sendable () async -> Int) {
        self.fetch = fetch
    }

    func current() async -> Int {
        if let price { return price }
        let fetched = await fetch()
        price = fetched
        return fetched
    }
}

func explorePriceCache() async throws {
    try await explore(driving: .everything) { simulation in
        let fetches = Atomic(0)
        let cache = PriceCache {
            fetches.add(1, ordering: .relaxed)
            try? await Task.sleep(for: .seconds(1))
            return 42
        }
        async let one = cache.current()
        async let other = cache.current()
        _ = await (one, other)
        try simulation.require(fetches.load(ordering: .relaxed) == 1, "one fetch is enough")
    }
}

@Suite struct `The page about exploring everything` {
    @Test func `finds the mistake that it shows`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) { try await explorePriceCache() }
        #expect(failure?.diagram.contains("one fetch is enough") == true)
    }
}
