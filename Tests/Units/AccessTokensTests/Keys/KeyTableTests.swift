import TestBudgets
import Testing
import TokenServiceConcurrency

@testable import AccessTokens

/// Guarantee 23 on the pure table, without concurrency.
@Suite struct `The table of keys` {
    /// Each state is reached by walking its path again, since a copied table would keep released services alive.
    @Test(arguments: [0, 1, 2])
    func `every reachable state of two keys keeps what it must, bounds the rest and never makes a second service`(limit: Int)
        async
    {
        await walk(keys: 2, limit: limit)
    }

    private func walk(keys: Int, limit: Int) async {
        var seen: Set<[Int]> = []
        var level = [(path: [KeyWorld.Event](), events: KeyWorld(keys: keys, limit: limit).events)]
        while !level.isEmpty {
            var next: [([KeyWorld.Event], [KeyWorld.Event])] = []
            for (path, events) in level {
                await Task.yield()
                for event in events {
                    let world = KeyWorld(keys: keys, limit: limit)
                    for event in path { _ = world.perform(event) }
                    if let violation = world.perform(event) {
                        Issue.record("\(violation): after \(path + [event])")
                        return
                    }
                    if seen.insert(world.key).inserted { next.append((path + [event], world.events)) }
                }
            }
            level = next
        }
        #expect(seen.count > 100, "\(seen.count)")
    }

    @Test(arguments: [0, 1, 3, 100])
    func `long random walks over many keys never differ from a naive table`(limit: Int) {
        for seed in 1...UInt64.everyday(1, thorough: 100) {
            var random = SplitMix64(seed: seed)
            let world = KeyWorld(keys: 8, limit: limit)
            for step in 1...2_000 {
                guard let event = world.events.randomElement(using: &random) else { break }
                if let violation = world.perform(event) {
                    Issue.record("\(violation): seed \(seed), step \(step), \(event)")
                    return
                }
            }
        }
    }
}
