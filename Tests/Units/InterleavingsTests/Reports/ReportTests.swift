import Interleavings
import Testing
import TokenServiceConcurrency

@Suite struct `A failure's report` {
    @Test func `names the failure, its schedule and how to replay it`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.random(schedules: 500, seed: 7), granularity: .accesses, stepLimit: 99, Races.lostUpdate)
        }
        let report = "\(try #require(failure))"
        let (number, seed, schedule) = (failure?.number ?? 0, failure?.seed ?? 0, failure.map { "\($0.schedule)" } ?? "")
        #expect(report.hasPrefix("Schedule \(number) of 500 (random, seed \(seed)) failed: the balance is "), "\(report)")
        #expect(report.contains("► "), "\(report)")
        #expect(report.contains(" build on "), "\(report)")
        let line = "    try await explore(.replay(\"\(schedule)\"), granularity: .accesses, stepLimit: 99) { simulation in …"
        #expect(report.hasSuffix(line), "\(report)")
    }

    @Test func `says how many switches are needed, and of an empty schedule that it is the usual order`() async throws {
        let switched = try await failure(.mixed()) { simulation in
            let order = Journal()
            for name in ["a", "b"] { simulation.spawn(name) { order.note(name) } }
            try await simulation.settle()
            try simulation.require(order.all == ["a", "b"], "in order")
        }
        #expect("\(switched)".contains("\n\nOne switch is needed: the usual order doesn't fail here.\n\nTo see it again"))
        let usual = try await failure(.mixed()) { _ in throw Stop() }
        #expect("\(usual)".hasSuffix("explore(.replay(\"\")) { simulation in …  // the usual order"))
        #expect(usual.svg.contains(", the usual order"))
    }

    @Test func `explains a requirement of Swift Testing in a target without InterleavingsTesting`() async throws {
        let caught = Lock<(any Error)?>(nil)
        withKnownIssue("This issue is intended: the test needs the error of a failed #require, which also records an issue.") {
            do { try #require(Bool(false)) } catch { caught.withLock { $0 = error } }
        }
        let error = try #require(caught.withLock { $0 })
        let found = try await failure(.mixed(schedules: 2)) { _ in throw error }
        #expect("\(found)".contains("Add the product InterleavingsTesting to the test target"), "\(found)")
    }

    @Test func `names children after the task that made them`() async throws {
        let found = try await failure(.replay("")) { simulation in
            simulation.spawn("Anna") {
                await withTaskGroup { group in
                    for number in 1...2 { group.addTask { simulation.log("loads \(number)") } }
                }
                await Task(executorPreference: simulation.taskExecutor) {}.value
            }
            try await simulation.settle()
            throw Stop()
        }
        #expect(found.diagram.hasPrefix("step  scenario  Anna      Anna.1     Anna.2     Anna.3\n"), "\(found.diagram)")
        #expect(found.diagram.contains("\n   3  │         │         ● loads 1\n"), "\(found.diagram)")
    }

    @Test func `folds the steps of a livelock`() async throws {
        let found = try await failure(.replay(""), stepLimit: 2_000) { simulation in
            for name in ["a", "b"] { simulation.spawn(name) { while true { await Task.yield() } } }
        }
        #expect(found.problem?.code == .livelock)
        #expect(found.diagram.contains(" more times"), "\(found.diagram)")
        #expect(found.diagram.split(separator: "\n").count < 100, "\(found.diagram)")
    }

    @Test func `is the same in every run`() async throws {
        var reports: Set<String> = []
        for _ in 1...3 {
            let failure = await #expect(throws: ScheduleFailure.self) { try await explore(.mixed(), Races.sixCallers) }
            reports.insert("\(try #require(failure))")
        }
        #expect(reports.count == 1)
    }

    @Test func `has no diagram if nothing was recorded`() async throws {
        let runs = Account()
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.random(schedules: 2)) { simulation in
                runs.balance += 1
                for _ in 0..<runs.balance { simulation.spawn("task") {} }
            }
        }
        let report = "\(try #require(failure))"
        #expect(report.contains("The same choices led to another execution"))
        #expect(!report.contains("step  "))
        #expect(report.contains("\n\nTo see it again"))
    }

    @Test func `is safe to print, whatever an error contains`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.replay("")) { simulation in
                try simulation.require(false, "\u{1B}[31mred\u{7}\nsecond line\u{202E}")
            }
        }
        let report = "\(try #require(failure))"
        #expect(report.contains("failed: ␛[31mred␇\nsecond line\u{FFFD}\n"), "\(report)")
        #expect(report.contains("✘ ␛[31mred␇ second line\u{FFFD}"), "\(report)")
        #expect(!report.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" })
    }
}
