import Foundation
import Insides
import Interleavings
import InterleavingsEverything
import InterleavingsTesting
import Synchronization
import Testing

// The files shown in “Finding a first race”, unchanged. The first file's test is meant to fail, so none runs by itself: the suite
// at the end calls them.

@Suite(.disabled("the tutorial's own tests run below")) enum FirstRace {
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

    @Suite(.exploring()) struct PriceCacheTests {
        @Test func `two callers share one fetch`() async throws {
            try await explore(driving: .everything) { simulation in
                let fetches = Mutex(0)
                let cache = PriceCache {
                    fetches.withLock { $0 += 1 }
                    try? await Task.sleep(for: .seconds(1))
                    return 42
                }
                simulation.spawn("Anna") { await cache.get() }
                simulation.spawn("Ben") { await cache.get() }
                try await simulation.settle()
                try simulation.require(fetches.withLock { $0 } == 1, "one fetch for both")
            }
        }
    }
}

@Suite(.disabled("the tutorial's own tests run below")) enum FirstRepair {
    actor PriceCache {
        private var fetching: Task<Int, Never>?
        private let fetch: @Sendable () async -> Int

        init(fetch: @escaping @Sendable () async -> Int) {
            self.fetch = fetch
        }

        func get() async -> Int {
            if let fetching { return await fetching.value }
            let task = Task { [fetch] in await fetch() }
            fetching = task
            return await task.value
        }
    }

    @Suite(.exploring()) struct PriceCacheTests {
        @Test func `two callers share one fetch`() async throws {
            try await explore(.exhaustive(), driving: .everything) { simulation in
                let fetches = Mutex(0)
                let cache = PriceCache {
                    fetches.withLock { $0 += 1 }
                    try? await Task.sleep(for: .seconds(1))
                    return 42
                }
                simulation.spawn("Anna") { await cache.get() }
                simulation.spawn("Ben") { await cache.get() }
                try await simulation.settle()
                try simulation.require(fetches.withLock { $0 } == 1, "one fetch for both")
            }
        }
    }
}

@Suite(.disabled("the tutorial's own tests run below")) enum FirstSeam {
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

    @Suite(.exploring()) struct PriceCacheTests {
        @Test func `two callers share one fetch`() async throws {
            try await explore(.exhaustive()) { simulation in
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
        }
    }
}

@Suite(.unlinked) struct `The tutorial` {
    private static func page() throws -> String {
        let path = "Sources/Interleavings/Interleavings.docc/FindingAFirstRace.md"
        return try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
    }

    @Test func `shows a test that fails, and the report that it prints`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await FirstRace.PriceCacheTests().`two callers share one fetch`()
        }
        // The page shows a debug build's report; a release build takes other steps.
        #if DEBUG && os(Linux) && arch(x86_64)
        let report = "\(try #require(failure))".replacing("FirstRace.PriceCache", with: "PriceCache")
            .replacing("DocumentationTests/FirstRaceTutorial.swift:23", with: "PricesTests/PriceCacheTests.swift:17")
        #expect(try Self.page().contains("```\n\(report)\n```"), "\(report)")
        #endif
        #expect(try Self.page().contains("INTERLEAVINGS_REPLAY='\(try #require(failure).schedule)'"))
    }

    @Test func `shows a repair that passes`() async throws {
        try await FirstRepair.PriceCacheTests().`two callers share one fetch`()
    }

    @Test func `shows the same repair with a seam`() async throws {
        try await FirstSeam.PriceCacheTests().`two callers share one fetch`()
    }

    @Test func `names products that the manifest has`() throws {
        let manifest = try String(contentsOf: LinkTests.root.appending(path: "Package.swift"), encoding: .utf8)
        let products = try Self.page().matches(of: /\.product\(name: "(\w+)", package: "TokenService"\)/).map { String($0.1) }
        #expect(products == ["Interleavings", "InterleavingsEverything", "InterleavingsTesting"])
        for product in products { #expect(manifest.contains(".library(name: \"\(product)\"")) }
    }
}
