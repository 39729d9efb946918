@testable import Interleavings
import Testing
import TokenServiceConcurrency

@Suite struct `An error of a spawned task` {
    @Test func `that nothing reads fails the schedule, with the task, the error, the place and what to do`() async throws {
        let line = #line + 2
        let found = try await failure(.exhaustive()) { simulation in
            simulation.spawn("Anna") { throw Refusal(number: 7) }
            simulation.spawn("Ben") { await Task.yield() }
            try await simulation.settle()
        }
        let problem = try #require(found.problem)
        #expect(problem.code == .unreadError)
        #expect(problem.tasks == ["Anna"])
        #expect(problem.place == "InterleavingsTests/UnreadErrorTests.swift:\(line)")
        let text =
            "Unread error: 'Anna' threw \"Refusal(number: 7)\", and nothing read it. Read its 'value' or 'result', catch"
        #expect(problem.description.hasPrefix(text))
        #expect(found.diagram.contains("nothing read its error"))
        #expect(found.isMinimal && found.choices.isEmpty)
    }

    @Test func `passes if the scenario or another task reads the value or the result, before or after the task's end`()
        async throws
    {
        try await explore(.exhaustive()) { simulation in
            let early = simulation.spawn("read early") { throw Refusal() }
            _ = await early.result
            let late = simulation.spawn("read late") { throw Refusal() }
            try await simulation.settle()
            await #expect(throws: Refusal.self) { try await late.value }
            let other = simulation.spawn("read by another") { throw Refusal() }
            simulation.spawn("reader") { try? await other.value }
        }
    }

    @Test func `that the task catches passes`() async throws {
        try await explore(.exhaustive()) { simulation in
            simulation.spawn("Anna") { try? refuse() }
            simulation.spawn("Ben") { await Task.yield() }
        }
    }

    @Test func `that the scenario allows passes`() async throws {
        try await explore(.exhaustive()) { simulation in
            simulation.spawn("Anna") { throw Refusal() }.allowingError()
            simulation.spawn("Ben") { await Task.yield() }
        }
    }

    @Test func `counts as read once another task asks for it, even if that task was cancelled`() async throws {
        try await explore(.exhaustive()) { simulation in
            let thrower = simulation.spawn("thrower") { throw Refusal() }
            let reader = simulation.spawn("reader") { _ = await thrower.result }
            reader.cancel()
        }
    }

    @Test func `needs no reader if it is a CancellationError of a cancelled task`() async throws {
        try await explore(.exhaustive()) { simulation in
            let sleeper = simulation.spawn("sleeper") { try await simulation.clock.sleep(for: .seconds(1)) }
            #expect(!sleeper.isCancelled)
            sleeper.cancel()
            #expect(sleeper.isCancelled)
        }
    }

    @Test func `is reported differently for a CancellationError without a cancellation, and needs a reader for any other error`()
        async throws
    {
        let notCancelled = try await failure(.exhaustive()) { simulation in
            simulation.spawn("liar") { throw CancellationError() }
        }
        let text = "Uncaused cancellation: 'liar' threw a CancellationError, but nothing had cancelled it."
        #expect(notCancelled.problem?.description.hasPrefix(text) == true)
        #expect(notCancelled.problem?.description.contains("allowingError") == false)
        #expect(notCancelled.diagram.contains("nothing cancelled it"))
        let other = try await failure(.exhaustive()) { simulation in
            simulation.spawn("refuser") { throw Refusal() }.cancel()
        }
        #expect(other.problem?.code == .unreadError)
    }

    @Test func `gives way to a failed requirement, an error of the scenario or a deadlock, which may have caused it`()
        async throws
    {
        let required = try await failure(.exhaustive()) { simulation in
            simulation.spawn("refuser") { throw Refusal() }
            simulation.spawn("requirer") { try simulation.require(false, "more") }
        }
        #expect(required.problem?.code == .requirement)
        let thrown = try await failure(.exhaustive()) { simulation in
            simulation.spawn("refuser") { throw Refusal() }
            throw Stop()
        }
        #expect(thrown.underlying is Stop)
        let deadlock = try await failure(.exhaustive()) { simulation in
            simulation.spawn("refuser") { throw Refusal() }
            simulation.spawn("lost") { await waitForEver() }
        }
        #expect(deadlock.problem?.code == .deadlock)
    }

    @Test func `doesn't count if it is thrown because the execution is over`() async throws {
        let summary = try await explore(.exhaustive(), countsFailures: true) { simulation in
            simulation.spawn("sleeper") {
                do { try await simulation.clock.sleep(for: .seconds(1)) } catch { throw Refusal() }
            }
            throw Stop()
        }
        #expect(summary.failures == summary.schedules)
        #expect(summary.firstFailure?.underlying is Stop)
    }

    /// Three tasks in 6 orders; Cleo is before both others in 2.
    @Test(arguments: [Granularity.jobs, .accesses])
    func `is counted among the failures, shrunk although its text varies, and found again in a replay`(granularity: Granularity)
        async throws
    {
        let texts = Tally()
        let scenario: Scenario = { simulation in
            let order = Journal()
            for name in ["Anna", "Ben"] { simulation.spawn(name) { order.note(name) } }
            simulation.spawn("Cleo") { if order.count == 0 { throw Refusal(number: texts.next()) } }
        }
        let summary = try await explore(.exhaustive(), granularity: granularity, countsFailures: true, scenario)
        #expect(summary.failures == 2 && summary.schedules == 6)
        let found = try #require(summary.firstFailure)
        #expect(found.isMinimal && found.choices.count { $0 > 0 } == 1)
        let again = try await failure(.replay(found.schedule), granularity: granularity, scenario)
        #expect(again.problem?.place == found.problem?.place)
    }

    @Test func `is an escape if a task outside reads it`() async throws {
        let found = try await failure(.exhaustive()) { simulation in
            let thrower = simulation.spawn("thrower") { throw Refusal() }
            await Task.detached { _ = await thrower.result }.value
        }
        #expect(found.problem?.code == .escape)
    }
}

@Suite struct `A scenario that ends before its tasks begin` {
    private static let note = "in every schedule the scenario ended before its tasks began"

    @Test func `has a note in the summary if it has required something of its tasks`() async throws {
        let summary = try await explore(.exhaustive()) { simulation in
            let loads = Tally()
            for name in ["Anna", "Ben"] { simulation.spawn(name) { loads.next() } }
            try simulation.require(loads.value <= 1, "one load")
        }
        #expect("\(summary)".contains(Self.note))
        #expect("\(summary)".contains("await them or call settle() first"))
    }

    @Test(arguments: [Granularity.jobs, .accesses])
    func `has no note if it waits for them in any way`(granularity: Granularity) async throws {
        let waits: [Scenario] = [
            { try await $0.settle() }, { try await $0.settle(waitsForTimers: false) },
            { try await $0.clock.sleep(for: .seconds(1)) }, { _ = await $0.spawn("other") {}.result },
            { _ in await Task.yield() },
        ]
        for wait in waits {
            let summary = try await explore(.exhaustive(), granularity: granularity) { simulation in
                for name in ["Anna", "Ben"] { simulation.spawn(name) { await Task.yield() } }
                try simulation.require(true, "before")
                try await wait(simulation)
                try simulation.require(true, "after")
            }
            #expect(!"\(summary)".contains(Self.note))
        }
    }

    @Test func `has no note if only its tasks require something, or if it does so before it spawns them`() async throws {
        let summary = try await explore(.exhaustive()) { simulation in
            try simulation.require(simulation.clock.now.offset == .zero, "a fresh start")
            for name in ["Anna", "Ben"] { simulation.spawn(name) { try simulation.require(true, "inside") } }
        }
        #expect(!"\(summary)".contains(Self.note))
    }
}

private struct Refusal: Error {
    var number = 0
}

private func refuse() throws { throw Refusal() }
