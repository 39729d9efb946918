import Foundation
import Interleavings
import Synchronization
import Testing

@Suite struct `Uncontrolled nondeterminism` {
    // If two equal random numbers would make a test fail, the numbers have thousands of possible values.

    @Test func `in the first execution is reported, with the step where two runs differ`() async throws {
        let found = try await failure(.random(schedules: 1)) { simulation in
            for _ in 0..<Int.random(in: 0..<4_000) { await Task.yield() }
            simulation.spawn("other") {}
        }
        #expect(found.problem?.code == .nondeterminism)
        let detail = try #require(found.problem?.detail)
        #expect(detail.contains("at step") || detail.contains("ended after"))
        #expect("\(found)".contains("randomness"))
    }

    @Test func `in a logged text is reported with the text`() async throws {
        let found = try await failure(.random(schedules: 1)) { simulation in
            let number = UInt64.random(in: 0...UInt64.max)
            simulation.log("drew \(number)")
            for _ in 0..<number % 4_000 { await Task.yield() }
        }
        #expect(found.problem?.code == .nondeterminism)
        #expect(found.problem?.detail.contains("at step 1 'scenario' logged 'drew ") == true)
    }

    @Test func `from real time is found`() async throws {
        let found = try await failure(.random(schedules: 1)) { _ in
            let start = DispatchTime.now().uptimeNanoseconds
            for _ in 0..<start % 4_000 { await Task.yield() }
        }
        #expect(found.problem?.code == .nondeterminism)
    }

    @Test func `in the set of runnable tasks is reported with the task names of both runs`() async throws {
        let runs = Tally()
        let found = try await failure(.replay("")) { simulation in
            let isOdd = runs.next() % 2 == 1
            simulation.spawn("Anna") {}
            if isOdd { simulation.spawn("Ben") {} }
        }
        #expect(found.problem?.detail.contains("'Anna', 'Ben' could run, the first time, and 'Anna'") == true, "\(found)")
    }

    @Test func `in the order of equal tasks is found by their names, and the report has both orders`() async throws {
        let runs = Tally()
        let found = try await failure(.replay("")) { simulation in
            let isOdd = runs.next() % 2 == 1
            for name in ["Cleo"] + (isOdd ? ["Anna", "Ben"] : ["Ben", "Anna"]) { simulation.spawn(name) {} }
        }
        let detail = try #require(found.problem?.detail)
        let orders = ["'Anna', 'Ben'", "'Ben', 'Anna'"]
        #expect(orders.allSatisfy(detail.contains), "\(detail)")
    }

    @Test func `is found if executions that look the same fail only sometimes`() async throws {
        let runs = Tally()
        let found = try await failure(.random(schedules: 5)) { _ in
            if runs.next() % 2 == 0 { throw Stop() }
        }
        #expect(found.problem?.code == .nondeterminism)
        #expect(found.problem?.detail.contains("Stop()") == true)
    }

    @Test func `in the first run only is found and reported as such`() async throws {
        let warm = Tally()
        let found = try await failure(.random(schedules: 5)) { _ in
            if warm.next() == 1 { await Task.yield() }
        }
        #expect(found.problem?.code == .nondeterminism)
        #expect(found.problem?.detail.contains("only the first run differs") == true)
    }

    @Test func `in a failing execution is found even if the failure is the same each time`() async throws {
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

    @Test func `in a later failing execution is found`() async throws {
        let runs = Tally()
        let found = try await failure(.random(schedules: 100)) { simulation in
            if runs.next() == 50 { throw Stop() }
            await Task.yield()
        }
        #expect(found.number == 49)
        #expect(found.problem?.code == .nondeterminism)
    }

    @Test(arguments: [["a"], ["a", "b", "c", "d"]])
    func `that brings other tasks than before ends an exhaustive exploration`(names: [String]) async throws {
        let runs = Tally()
        let found = try await failure(.exhaustive()) { simulation in
            for name in runs.next() == 10 ? names : ["a", "b", "c"] { simulation.spawn(name) { await Task.yield() } }
        }
        #expect(found.problem?.code == .nondeterminism)
        #expect(found.strategy == "exhaustive")
    }

    @Test func `that brings another number of choices than before ends an exhaustive exploration`() async throws {
        let runs = Tally()
        let found = try await failure(.exhaustive()) { simulation in
            _ = simulation.choose("first", runs.next() == 6 ? 3 : 2)
            _ = simulation.choose("second", 8)
        }
        #expect(found.problem?.code == .nondeterminism)
        let choice = "at choice 1 there were 3 candidates, and 2 in an earlier schedule with the same choices"
        #expect(found.problem?.detail == choice)
    }

    @Test func `is an error even if failures are counted`() async throws {
        let runs = Tally()
        await #expect(throws: ScheduleFailure.self) {
            try await explore(.random(schedules: 10), countsFailures: true) { _ in
                // Each run has one step more.
                for _ in 0..<runs.next() { await Task.yield() }
            }
        }
    }
}
