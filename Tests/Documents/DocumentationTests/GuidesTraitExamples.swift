import Interleavings
import InterleavingsTesting
import Testing

// The Swift block of the landing page of `InterleavingsTesting`, unchanged, and run.

private actor Counter {
    var value = 0

    func increment() {
        value += 1
    }
}

@Suite(.exploring(schedules: 100)) struct `A counter` {
    @Test func `counts every increment`() async throws {
        try await explore { simulation in
            let counter = Counter()
            simulation.spawn("Anna") { await counter.increment() }
            simulation.spawn("Ben") { await counter.increment() }
            try await simulation.settle()
            #expect(await counter.value == 2)
        }
    }
}
