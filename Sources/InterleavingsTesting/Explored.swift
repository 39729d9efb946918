public import Interleavings

/// Runs a test's body under many schedules, where there is no trait: in a method of XCTest.
///
/// ```swift
/// func testStatus() async throws {
///     try await explored { … }
/// }
/// ```
///
/// It does what ``ExploredTrait`` does for a test of Swift Testing. An error that the body throws fails the schedule. An assertion of
/// XCTest does if the test case hands its failures to ``failSchedule(_:at:)``; otherwise it fails the test at once, and the other
/// schedules still run.
///
/// - Parameters:
///   - schedules: How many schedules to run; 0: the body runs once, as without this function.
///   - seed: The seed of random schedules.
///   - replay: The one schedule to run, as a report prints it; `nil`: those that `schedules` and `seed` say.
///   - time: When the clock moves.
///   - machine: How long a task may be left without a processor.
///   - driving: Which code to drive; `nil`: everything but the queues of Dispatch.
///   - stepLimit: How many steps one schedule may have.
///   - body: The test.
/// - Throws: A ``/Interleavings/ScheduleFailure`` with the first schedule that fails.
public func explored(
    schedules: Int = 200, seed: UInt64 = 1, replay: String? = nil, time: TimeModel = .whenIdle, machine: MachineModel = .busy,
    driving: Driving? = nil, stepLimit: Int = 10_000, _ body: @escaping @Sendable () async throws -> Void
) async throws {
    let exploration = TestExploration(
        schedules: schedules, seed: seed, replay: replay, time: time, machine: machine, driving: driving, stepLimit: stepLimit)
    try await exploration.run(.function) { _ in try await body() }
}

/// Runs several tests at once under many schedules, to find those that disturb each other through a global variable or a file.
///
/// ```swift
/// try await exploreTogether(["saves": { try await StoreTests().saves() }, "clears": { try await StoreTests().clears() }]) {
///     Store.shared.reset()
/// }
/// ```
///
/// A schedule fails if one of the tests does. If each passes alone, they share what they change.
///
/// - Parameters:
///   - tests: The tests by the names that a report gives them.
///   - schedules: How many schedules to run.
///   - seed: The seed of random schedules.
///   - replay: The one schedule to run, as a report prints it; `nil`: those that `schedules` and `seed` say.
///   - time: When the clock moves.
///   - machine: How long a task may be left without a processor.
///   - driving: Which code to drive; `nil`: everything but the queues of Dispatch.
///   - stepLimit: How many steps one schedule may have.
///   - prepare: Puts what the tests share into the state in which each schedule begins.
/// - Throws: A ``/Interleavings/ScheduleFailure`` with the first schedule that fails.
public func exploreTogether(
    _ tests: KeyValuePairs<String, @Sendable () async throws -> Void>,
    schedules: Int = 200, seed: UInt64 = 1, replay: String? = nil, time: TimeModel = .whenIdle, machine: MachineModel = .busy,
    driving: Driving? = nil, stepLimit: Int = 10_000, preparing prepare: @escaping @Sendable () async throws -> Void = {}
) async throws {
    let exploration = TestExploration(
        schedules: schedules, seed: seed, replay: replay, time: time, machine: machine, driving: driving, stepLimit: stepLimit)
    try await exploration.run(.together) { simulation in
        try await prepare()
        let tasks = tests.map { name, test in
            simulation.map { $0.spawn(name, test).task } ?? Task { try await test() }
        }
        for task in tasks { try await task.value }
    }
}

/// Fails the current schedule, for libraries of tests whose failures don't come by themselves.
///
/// A test case of XCTest on Linux calls it in its `recordFailure(withDescription:inFile:atLine:expected:)`.
///
/// - Parameters:
///   - reason: What the report says.
///   - place: The place in the code, which tells failures apart.
/// - Returns: Whether there is a schedule to fail; `false`: report the failure as usual.
public func failSchedule(_ reason: String, at place: String) -> Bool {
    guard let simulation = Simulation.current else { return false }
    simulation.fail(reason, at: place)
    return true
}
