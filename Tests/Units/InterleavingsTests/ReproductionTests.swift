import Foundation
import Interleavings
import Testing

@Suite struct `Reproduction` {
    @Test(arguments: [Strategy.random(schedules: 200), .pct(schedules: 200), .mixed(schedules: 200), .exhaustive(limit: 200)])
    func `the same seed gives the same executions`(strategy: Strategy) async throws {
        let first = try await story(strategy)
        #expect(first.count >= 200)
        #expect(try await story(strategy) == first)
    }

    @Test func `another seed gives other executions`() async throws {
        #expect(try await story(.random(schedules: 50, seed: 1)) != story(.random(schedules: 50, seed: 51)))
    }

    @Test func `eight explorations at once run as each does alone`() async throws {
        let alone = try await story(.mixed(schedules: 150))
        try await withThrowingTaskGroup { group in
            for _ in 1...8 { group.addTask { try await story(.mixed(schedules: 150)) } }
            for try await one in group { #expect(one == alone) }
        }
    }

    @Test func `three processes with the same seed run the same executions`() async throws {
        var outputs: [String] = []
        for _ in 1...3 {
            let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                let story = try await story(.mixed(schedules: 150))
                print("story:", story.joined(separator: "|").utf8.reduce(5_381 as UInt64) { $0 &* 33 &+ UInt64($1) }, ":")
            }
            let output = String(decoding: try #require(result).standardOutputContent, as: UTF8.self)
            let line = try #require(output.split(separator: "\n").first { $0.hasPrefix("story:") })
            outputs.append(String(line))
        }
        #expect(Set(outputs).count == 1)
    }

    @Test func `a printed schedule replays to the same trace each time`() async throws {
        let found = try await failure(.mixed(), naiveCallers)
        let printed = try #require(Schedule("\(found.schedule)"))
        for _ in 1...3 {
            let again = try await failure(.replay(printed), naiveCallers)
            #expect(again.trace == found.trace)
            #expect(again.schedule == found.schedule)
            #expect(again.problem == found.problem)
            #expect(again.strategy == "replay")
        }
    }

    @Test func `the first of two failures in one step counts`() async throws {
        let found = try await failure(.replay("")) { simulation in
            try? simulation.require(false, "the first")
            try? simulation.require(false, "the second")
        }
        #expect(found.problem?.detail == "the first")
    }

    @Test func `the first failure has the number and the seed of its schedule`() async throws {
        let found = try await failure(.random(schedules: 500, seed: 7), naiveCallers)
        let seed = try #require(found.seed)
        #expect(seed == 7 + UInt64(found.number) - 1)
        let again = try await failure(.random(schedules: 1, seed: seed), naiveCallers)
        #expect(again.trace == found.trace)
    }
}

/// Returns the events of an exploration of tasks, an actor, queues, time and choices, in order.
func story(_ strategy: Strategy) async throws -> [String] {
    let journal = Journal()
    try await explore(strategy, time: .anytime) { simulation in
        let cache = NaiveCache {
            try? await simulation.clock.sleep(for: .milliseconds(simulation.choose("delay", 3)))
            return 1
        }
        let queue = simulation.concurrentQueue("queue")
        for name in ["a", "b", "c"] {
            simulation.spawn(name) {
                journal.note("\(name) begins")
                _ = await cache.get()
                queue.async { journal.note("\(name) queued") }
                journal.note("\(name) has it at \(simulation.clock.now)")
            }
        }
        try await simulation.settle()
        journal.note("over")
    }
    return journal.all
}
