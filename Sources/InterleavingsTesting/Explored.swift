public import Interleavings

/// Runs a closure under many schedules, as ``ExploredTrait`` runs a whole test: for the part of a test that is to be explored.
///
/// ```swift
/// @Test func `shows the status`() async throws {
///     try await explored { … }
/// }
/// ```
///
/// An error that the closure throws fails the schedule, as an expectation does. So it works in a method of XCTest; an
/// assertion of XCTest fails the schedule if the test case hands it to ``failSchedule(_:at:)``.
///
/// - Parameters:
///   - schedules: How many schedules to run; 0: the body runs once, as without this function.
///   - seed: The seed of random schedules.
///   - replay: The one schedule to run, as a report prints it; `nil`: those that `schedules` and `seed` say.
///   - time: When the clock moves.
///   - machine: How long a task may be left without a processor.
///   - driving: Which code to drive; `nil`: everything but the queues of Dispatch.
///   - stepLimit: How many steps one schedule may have.
///   - body: What to explore.
///   - fileID: The file of the call, which a report after a crash names.
///   - line: The line of the call.
/// - Throws: A ``/Interleavings/ScheduleFailure`` with the first schedule that fails.
public func explored(
    schedules: Int = 200, seed: UInt64 = 1, replay: String? = nil, time: TimeModel = .whenIdle, machine: MachineModel = .busy,
    driving: Driving? = nil, stepLimit: Int = 10_000, _ body: @escaping @Sendable () async throws -> Void,
    fileID: StaticString = #fileID, line: UInt = #line
) async throws {
    let exploration = TestExploration(
        schedules: schedules, seed: seed, replay: replay, time: time, machine: machine, driving: driving, stepLimit: stepLimit)
    try await exploration.run(.function, at: "\(fileID):\(line)") { _ in try await body() }
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
///   - fileID: The file of the call, which a report after a crash names.
///   - line: The line of the call.
/// - Throws: A ``/Interleavings/ScheduleFailure`` with the first schedule that fails.
public func exploreTogether(
    _ tests: KeyValuePairs<String, @Sendable () async throws -> Void>,
    schedules: Int = 200, seed: UInt64 = 1, replay: String? = nil, time: TimeModel = .whenIdle, machine: MachineModel = .busy,
    driving: Driving? = nil, stepLimit: Int = 10_000, preparing prepare: @escaping @Sendable () async throws -> Void = {},
    fileID: StaticString = #fileID, line: UInt = #line
) async throws {
    let exploration = TestExploration(
        schedules: schedules, seed: seed, replay: replay, time: time, machine: machine, driving: driving, stepLimit: stepLimit)
    try await exploration.run(.together, at: "\(fileID):\(line)") { simulation in
        try await prepare()
        let tasks = tests.map { name, test in
            simulation.map { $0.spawn(name, test).task } ?? Task { try await test() }
        }
        for task in tasks { try await task.value }
    }
}

/// Fails the current schedule, for test libraries whose failures don't come by themselves.
///
/// On Linux, a test case of XCTest calls it in its `recordFailure(withDescription:inFile:atLine:expected:)`.
///
/// - Parameters:
///   - reason: What the report says.
///   - place: The place in the code, such as `MirrorTests.swift:31`, which tells failures apart.
/// - Returns: Whether there is a schedule to fail; `false`: record the failure as usual.
public func failSchedule(_ reason: String, at place: String) -> Bool {
    guard let simulation = Simulation.current else { return false }
    simulation.fail(reason, at: place)
    return true
}
