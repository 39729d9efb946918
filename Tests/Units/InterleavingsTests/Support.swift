import Foundation
@testable import Interleavings
import Testing
import TokenServiceConcurrency

/// The explored scenario.
typealias Scenario = @Sendable (Simulation) async throws -> Void

/// Explores, and returns the failure, which there must be.
func failure(
    _ strategy: Strategy, time: TimeModel = .whenIdle, granularity: Granularity = .jobs,
    stepLimit: Int = 10_000, _ scenario: @escaping Scenario, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> ScheduleFailure {
    let error = await #expect(throws: ScheduleFailure.self, sourceLocation: sourceLocation) {
        try await explore(strategy, time: time, granularity: granularity, stepLimit: stepLimit, scenario)
    }
    return try #require(error, sourceLocation: sourceLocation)
}

extension ScheduleFailure {
    /// The explorer's own problem.
    var problem: ExplorationProblem? { underlying as? ExplorationProblem }
}

/// A log of events in order; of several executions if it is created outside the scenario.
final class Journal: Sendable {
    private let lines = Lock<[String]>([])

    func note(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
    var count: Int { all.count }
    func contains(_ line: String) -> Bool { all.contains(line) }
}

/// A number that tasks share.
final class Tally: Sendable {
    private let number = Lock(0)

    @discardableResult func next() -> Int {
        number.withLock { number in
            number += 1
            return number
        }
    }
    var value: Int { number.withLock { $0 } }
}

/// Two tasks of `jobs` jobs each; their order is noted in `orders`, one line for each execution.
func twoTasks(jobs: Int, orders: Journal) -> Scenario {
    { simulation in
        let order = Journal()
        let tasks = ["a", "b"].map { name in
            simulation.spawn(name) {
                for job in 1...jobs {
                    order.note(name)
                    if job < jobs { await Task.yield() }
                }
            }
        }
        for task in tasks { try await task.value }
        orders.note(order.all.joined())
    }
}

/// Loses a continuation.
func waitForEver() async {
    await unsafe withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
}
