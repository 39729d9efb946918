@testable import Interleavings
import InterleavingsTesting
import Testing
import TokenServiceConcurrency

@Sendable private func oneTask(_ simulation: Simulation) async throws { simulation.spawn("a") {} }

@Suite(.exploring(schedules: 7)) struct `A suite that explores` {
    @Test func `sets the number of schedules`() async throws {
        let summary = try await explore(.mixed(), oneTask)
        #expect(summary.schedules == 7)
    }

    @Test(.exploring(schedules: 3)) func `lets a test set another number`() async throws {
        #expect(try await explore(.random(), oneTask).schedules == 3)
        #expect(try await explore(.pct(), oneTask).schedules == 3)
    }

    @Test(.exploring(seed: 5)) func `gives a test the settings that it doesn't set itself`() async throws {
        #expect(try await explore(.mixed(), oneTask).schedules == 7)
    }

    @Test func `does not change exhaustive explorations and replays`() async throws {
        let summary = try await explore(.exhaustive()) { simulation in
            for number in 1...3 { simulation.spawn("\(number)") {} }
        }
        #expect(summary.coverage.isAll)
        #expect(summary.schedules > 3)
        #expect(try await explore(.replay("")) { _ in }.schedules == 1)
    }
}

/// Runs a body as Swift Testing runs a test's, and returns the issues.
private func collectIssues(_ body: @escaping @Sendable (Test) async throws -> Void) async throws -> [Issue] {
    let seen = Lock<[Issue]>([])
    let test = try #require(Test.current)
    let collector: IssueHandlingTrait = .compactMapIssues { issue in
        seen.withLock { $0.append(issue) }
        return nil
    }
    try await collector.provideScope(for: test, testCase: nil) { try await body(test) }
    return seen.withLock { $0 }
}

@Suite struct `A test without the trait` {
    @Test(arguments: [true, false])
    func `lets its scenario's expectations fail a schedule, without recording another issue`(isRequired: Bool) async throws {
        let failure = Lock<ScheduleFailure?>(nil)
        let issues = try await collectIssues { _ in
            let thrown = await #expect(throws: ScheduleFailure.self) {
                try await explore { simulation in
                    let order = Lock<[Int]>([])
                    for number in 1...2 { simulation.spawn("task \(number)") { order.withLock { $0.append(number) } } }
                    try await simulation.settle()
                    let seen = order.withLock { $0 }
                    if isRequired { try #require(seen == [1, 2]) } else { #expect(seen == [1, 2]) }
                }
            }
            failure.withLock { $0 = thrown }
        }
        #expect(issues.isEmpty, "\(issues.count)")
        let text = failure.withLock { $0.map { "\($0)" } } ?? ""
        #expect(text.contains("failed: Expectation failed: (seen → [2, 1]) == [1, 2]\n"), "\(text)")
    }
}

@Suite struct `The exploring trait` {
    private func issues(_ body: @escaping @Sendable () async throws -> Void) async throws -> [Issue] {
        try await collectIssues { test in
            let trait: ExplorationTrait = .exploring()
            try await trait.provideScope(for: test, testCase: nil, performing: body)
        }
    }

    @Test func `reports a failing exploration as one issue, with both ways to replay it`() async throws {
        let issues = try await issues {
            try await explore { simulation in
                let order = Lock<[Int]>([])
                for number in 1...2 { simulation.spawn("task \(number)") { order.withLock { $0.append(number) } } }
                try await simulation.settle()
                try simulation.require(order.withLock { $0 } == [1, 2], "in order")
            }
        }
        #expect(issues.count == 1)
        let text = issues.first?.comments.first?.rawValue ?? ""
        #expect(text.contains("failed: in order"))
        #expect(text.contains(#".replay("1")"#))
        #expect(text.contains("INTERLEAVINGS_REPLAY='1'"))
    }

    @Test func `says which of a test's explorations failed, and replays only that one`() async throws {
        let summaries = Lock<[Int]>([])
        @Sendable func exploreTwice() async throws {
            let first = try await explore(.random(schedules: 5), oneTask)
            summaries.withLock { $0.append(first.schedules) }
            try await explore { simulation in
                let order = Lock<[Int]>([])
                for number in 1...2 { simulation.spawn("task \(number)") { order.withLock { $0.append(number) } } }
                try await simulation.settle()
                try simulation.require(order.withLock { $0 } == [1, 2], "in order")
            }
        }
        let issues = try await issues { try await exploreTwice() }
        #expect(issues.first?.comments.first?.rawValue.contains("INTERLEAVINGS_REPLAY='2:1' swift test") == true)
        var overrides = Overrides(replay: "1")
        overrides.replayed = 2
        overrides.explorations = ExplorationCount()
        let replayed = await #expect(throws: ScheduleFailure.self) {
            try await Overrides.$current.withValue(overrides) { try await exploreTwice() }
        }
        #expect(replayed?.strategy == "replay")
        #expect(overrides.explorations?.hasReplayed == true)
        #expect(summaries.withLock { $0 } == [5, 5])
    }

    @Test func `turns a failing expectation in a scenario into a failing schedule`() async throws {
        let issues = try await issues {
            try await explore { simulation in
                let order = Lock<[Int]>([])
                for number in 1...2 { simulation.spawn("task \(number)") { order.withLock { $0.append(number) } } }
                try await simulation.settle()
                let seen = order.withLock { $0 }
                #expect(seen == [1, 2], "in order")
            }
        }
        #expect(issues.count == 1)
        let text = issues.first?.comments.first?.rawValue ?? ""
        #expect(text.contains("failed: in order: Expectation failed: (seen → [2, 1]) == [1, 2]\n"), "\(text)")
        #expect(text.contains("Required at InterleavingsTestingTests/ExplorationTraitTests.swift:"))
    }

    @Test func `does not change other errors and issues`() async throws {
        struct Other: Error {}
        let issues = try await issues { Issue.record("an issue outside") }
        #expect(issues.first?.comments.first?.rawValue == "an issue outside")
        await #expect(throws: Other.self) { _ = try await self.issues { throw Other() } }
    }
}
