@testable import Interleavings
import Testing
import TokenServiceConcurrency

@Suite struct `A replay that stops before a step` {
    @Test func `says which task runs next, what the others wait for, and since when`() async throws {
        let scenario: Scenario = { simulation in
            let waiter = simulation.spawn("waiter") { await waitForEver() }
            simulation.spawn("sleeper") { try await simulation.clock.sleep(for: .seconds(2)) }
            simulation.spawn("runner") {
                await Task.yield()
                await Task.yield()
            }
            simulation.spawn("other") { await Task.yield() }
            try await simulation.settle()
            waiter.cancel()
        }
        // As on platforms where functions aren't known.
        let stopped = try await Overrides.unaided { try await failure(.replay("", stoppingAt: 6), scenario) }
        let problem = try #require(stopped.problem)
        #expect(problem.code == .stopped)
        #expect(problem.tasks == ["runner"])
        #expect(
            problem.description == """
                Stopped before step 6, 0.0 seconds after the start:
                    'other' can run, since step 1
                    'runner' runs next, since step 5
                    'sleeper' sleeps until 2.0 seconds, since step 3
                    'scenario' waits until nothing else can run, since step 1
                    'waiter' waits for another task or for something outside, since step 2
                """)
        #expect("\(stopped)".hasPrefix("Schedule 1 (replay) stopped: Stopped before step 6"), "\(stopped)")
        #expect(stopped.trace.steps.count == 5)
        #expect(stopped.diagram.contains("would go on"))
    }

    @Test func `names the lock that a thread waits for`() async throws {
        let stopped = try await failure(.replay("0.0.1", stoppingAt: 6), granularity: .accesses) { simulation in
            let lock = InterleavedLock("cache")
            for name in ["Anna", "Ben"] { simulation.spawn(name) { lock.withLock { interleavingPoint() } } }
            try await simulation.settle()
        }
        #expect("\(stopped)".contains("    'Ben' waits for the lock 'cache', since step 5\n"), "\(stopped)")
        #expect("\(stopped)".contains("To see it to its end"))
        #expect(stopped.schedule == "0.0.1")
    }

    @Test func `says that time moves on next`() async throws {
        let stopped = try await failure(.replay("0.0.7", stoppingAt: 2)) { simulation in
            try await simulation.clock.sleep(for: .seconds(1))
        }
        #expect(stopped.schedule == "0.0.7")
        #expect(!stopped.diagram.contains("The usual order fails"))
        #expect(stopped.problem?.description.contains("    next, time moves on\n    'scenario' sleeps until 1.0 seconds") == true)
    }

    @Test func `runs to an earlier end of the execution, and says so unless that end is a failure`() async throws {
        let early = try await failure(.replay("", stoppingAt: 99)) { simulation in simulation.spawn("a") {} }
        #expect(early.problem?.detail == "it ends after step 2, but was to stop before step 99")
        let failed = try await failure(.replay("", stoppingAt: 99)) { _ in throw Stop() }
        #expect(failed.underlying is Stop)
    }

    @Test func `stops at the step that the environment names`() async throws {
        var overrides = Overrides(replay: "")
        overrides.stop = 2
        let stopped = try await Overrides.$current.withValue(overrides) {
            try await failure(.mixed()) { simulation in simulation.spawn("a") {} }
        }
        #expect(stopped.problem?.code == .stopped)
    }

    @Test func `recognises a debugger by what the system reports about the process`() {
        #expect(Debugger.isTraced("Name:\tswift\nTracerPid:\t4711\nUid:\t0\t0\n"))
        #expect(!Debugger.isTraced("Name:\tswift\nTracerPid:\t0\nUid:\t7\t7\n"))
        #expect(!Debugger.isTraced(""))
    }
}
