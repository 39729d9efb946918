@testable import Interleavings
import Testing

@Suite struct `Deadlocks` {
    @Test func `name the waiting tasks only`() async throws {
        // As on platforms where functions aren't known.
        let found = try await Overrides.unaided {
            try await failure(.mixed(schedules: 5)) { simulation in
                let lost = simulation.spawn("lost") { await waitForEver() }
                simulation.spawn("fine") { await Task.yield() }
                try await lost.value
            }
        }
        #expect(found.problem?.code == .deadlock)
        #expect(found.problem?.tasks == ["scenario", "lost"])
        #expect("\(found)".contains("'scenario', 'lost'"))
        #expect(found.choices.isEmpty)
        // To the explorer, a slow escape looks the same.
        #expect("\(found)".contains("simulation.clock"))
    }

    @Test func `are found if tasks wait for each other in some orders only`() async throws {
        let found = try await failure(.mixed()) { simulation in
            let gates = [Gate(), Gate()]
            for (name, order) in [("forth", [0, 1]), ("back", [1, 0])] {
                simulation.spawn(name) {
                    for index in order {
                        await gates[index].enter()
                        await Task.yield()
                    }
                    for index in order { await gates[index].leave() }
                }
            }
        }
        #expect(found.problem?.code == .deadlock)
        #expect(found.problem?.tasks == ["forth", "back"])
        // The usual order ends, so nothing outside is the cause.
        #expect("\(found)".contains(". In other orders they don't wait forever."))
        #expect(!"\(found)".contains("outside"))
    }

    @Test func `of a task that waits for itself are found`() async throws {
        let found = try await failure(.mixed(schedules: 1)) { simulation in
            let gate = Gate()
            await gate.enter()
            await gate.enter()
        }
        #expect(found.problem?.tasks == ["scenario"])
    }

    @Test func `are not reported while a timer is pending`() async throws {
        try await explore(.mixed(schedules: 50)) { simulation in
            let gate = Gate()
            await gate.enter()
            simulation.spawn("waiter") { await gate.enter() }
            try await simulation.clock.sleep(for: .seconds(1))
            await gate.leave()
        }
    }

    @Test func `cancel the remaining tasks, so that they can end`() async throws {
        let ends = Journal()
        _ = try await failure(.replay("")) { simulation in
            let lost = simulation.spawn("lost") { await waitForEver() }
            simulation.spawn("sleeper") {
                defer { ends.note("sleeper") }
                try await simulation.settle()
                try await lost.value
                while !Task.isCancelled { await Task.yield() }
            }
            await withTaskCancellationHandler {
                await waitForEver()
            } onCancel: {
                ends.note("scenario")
            }
        }
        #expect(ends.contains("scenario"))
    }
}

/// A lock for tasks.
actor Gate {
    private var isTaken = false
    private var waiters: [CheckedContinuation<Void, Never>] = []

    func enter() async {
        guard isTaken else { return isTaken = true }
        await withCheckedContinuation { waiters.append($0) }
    }

    func leave() {
        guard !waiters.isEmpty else { return isTaken = false }
        waiters.removeFirst().resume()
    }
}
