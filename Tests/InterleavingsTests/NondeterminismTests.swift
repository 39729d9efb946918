import Foundation
import Interleavings
import Synchronization
import Testing

@Suite struct `Uncontrolled nondeterminism` {
    // Random numbers have thousands of values where two that are equal would let a test fail.

    @Test func `of the first execution is reported, with the step where two differ`() async throws {
        let found = try await failure(.random(schedules: 1)) { simulation in
            for _ in 0..<Int.random(in: 0..<4_000) { await Task.yield() }
            simulation.spawn("other") {}
        }
        #expect(found.problem?.code == .nondeterminism)
        let detail = try #require(found.problem?.detail)
        #expect(detail.contains("at step") || detail.contains("was over after"))
        #expect("\(found)".contains("randomness"))
    }

    @Test func `that shows in what is logged is reported as that`() async throws {
        let found = try await failure(.random(schedules: 1)) { simulation in
            let number = UInt64.random(in: 0...UInt64.max)
            simulation.log("drew \(number)")
            for _ in 0..<number % 4_000 { await Task.yield() }
        }
        #expect(found.problem?.code == .nondeterminism)
        #expect(found.problem?.detail.contains("at step 1 'scenario' logged 'drew ") == true)
    }

    @Test func `real time is found`() async throws {
        let found = try await failure(.random(schedules: 1)) { _ in
            let start = DispatchTime.now().uptimeNanoseconds
            for _ in 0..<start % 4_000 { await Task.yield() }
        }
        #expect(found.problem?.code == .nondeterminism)
    }

    @Test func `a failure that comes and goes is found, though the executions look the same`() async throws {
        let runs = Tally()
        let found = try await failure(.random(schedules: 5)) { _ in
            if runs.next() % 2 == 0 { throw Stop() }
        }
        #expect(found.problem?.code == .nondeterminism)
        #expect(found.problem?.detail.contains("Stop()") == true)
    }

    @Test func `state that only the first execution finds is found, and said to be of the first`() async throws {
        let warm = Tally()
        let found = try await failure(.random(schedules: 5)) { _ in
            if warm.next() == 1 { await Task.yield() }
        }
        #expect(found.problem?.code == .nondeterminism)
        #expect(found.problem?.detail.contains("only the first") == true)
    }

    @Test func `of a failing execution is found, though it fails for the same reason each time`() async throws {
        let runs = Tally()
        let found = try await failure(.random(schedules: 5)) { simulation in
            let run = runs.next()
            // The first schedule passes, and passes again.
            guard run > 2 else { return }
            for number in 0...run % 2 { simulation.spawn("task \(number)") {} }
            await Task.yield()
            throw Stop()
        }
        #expect(found.problem?.code == .nondeterminism)
    }

    @Test func `of a later failing execution is found`() async throws {
        let runs = Tally()
        let found = try await failure(.random(schedules: 100)) { simulation in
            if runs.next() == 50 { throw Stop() }
            await Task.yield()
        }
        #expect(found.number == 49)
        #expect(found.problem?.code == .nondeterminism)
    }

    @Test(arguments: [["a"], ["a", "b", "c", "d"]])
    func `a search through all schedules notices when there are others than there were`(names: [String]) async throws {
        let runs = Tally()
        let found = try await failure(.exhaustive()) { simulation in
            for name in runs.next() == 10 ? names : ["a", "b", "c"] { simulation.spawn(name) { await Task.yield() } }
        }
        #expect(found.problem?.code == .nondeterminism)
        #expect(found.strategy == "exhaustive")
    }

    @Test func `a search through all schedules notices when a choice has another number of answers than it had`() async throws {
        let runs = Tally()
        let found = try await failure(.exhaustive()) { simulation in
            _ = simulation.choose("first", runs.next() == 6 ? 3 : 2)
            _ = simulation.choose("second", 8)
        }
        #expect(found.problem?.code == .nondeterminism)
    }

    @Test func `is thrown though failures are counted`() async throws {
        await #expect(throws: ScheduleFailure.self) {
            try await explore(.random(schedules: 10), countsFailures: true) { _ in
                for _ in 0..<Int.random(in: 0..<4_000) { await Task.yield() }
            }
        }
    }
}
