import Interleavings
import Testing

// Every Swift block of the README of `Interleavings`, unchanged except for the test's name: this one expects the failure.

private actor Counter {
    private(set) var value = 0

    func increment() async {
        let old = value
        await Task.yield()  // anything that suspends
        value = old + 1
    }
}

@Suite struct `The README of Interleavings` {
    @Test func `finds its first race`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore { simulation in
                let counter = Counter()
                simulation.spawn("Anna") { await counter.increment() }
                simulation.spawn("Ben") { await counter.increment() }
                try await simulation.settle()
                try simulation.require(await counter.value == 2, "both count")
            }
        }
        #expect("\(try #require(failure))".contains("both count"))
    }
}
