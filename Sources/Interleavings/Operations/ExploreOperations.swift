/// Draws programs of operations, runs each under many schedules, and throws the first whose results no sequential order explains.
///
/// The test defines the operations, and what they return if they run one after another. Which tasks perform which
/// operations in which order is explored. A failing program is shrunk: tasks and operations are left out while some schedule
/// still fails in the same way. Then its schedule is shrunk. The report shows the program, its results, and a line that replays
/// both.
///
/// ```swift
/// try await exploreOperations([.increment, .read], against: Counter()) { _ in
///     SharedCounter()
/// } perform: { counter, operation in
///     switch operation {
///     case .increment: await counter.increment()
///     case .read: await counter.value
///     }
/// }
/// ```
///
/// Each program is explored as by
/// ``explore(_:time:ordering:machine:granularity:driving:stepLimit:countsFailures:_:fileID:line:)``, with all that it checks: a
/// program fails, too, if an operation throws an error or never returns. Turn expected errors into outcomes. If a test run sets
/// the number of schedules, as many programs are drawn as make that number together.
///
/// - Parameters:
///   - operations: The operations that programs are made of, with their arguments. One that is listed twice is drawn twice as
///     often.
///   - specification: The right answers, and the state of a new object.
///   - programs: Which programs.
///   - schedules: The schedules of each program.
///   - time: When the simulation's clock moves.
///   - ordering: In which order jobs run that have reached an actor.
///   - machine: How long a task that could run may be left without a processor.
///   - granularity: Where tasks may be switched.
///   - driving: Which code to drive.
///   - stepLimit: How many steps one execution may have.
///   - subject: Creates the object, a new one for each execution.
///   - perform: Performs an operation, and returns its outcome. Several tasks call it at the same time.
///   - fileID: The file of the call, which a report after a crash names.
///   - line: The line of the call.
/// - Returns: The summary of all programs.
/// - Throws: A ``ScheduleFailure`` with the failing program, an ``ExplorationProblem`` if there is no program to
///   run, or `CancellationError` if the calling task is cancelled.
@discardableResult
public func exploreOperations<Specification: SequentialSpecification, Subject: Sendable>(
    _ operations: [Specification.Operation],
    against specification: Specification,
    programs: Programs = .random(),
    schedules: Strategy = .mixed(schedules: 100),
    time: TimeModel = .whenIdle,
    ordering: ActorOrdering = .arrival,
    machine: MachineModel = .fair,
    granularity: Granularity = .jobs,
    driving: Driving = .preferred,
    stepLimit: Int = 10_000,
    of subject: @escaping @Sendable (_ simulation: Simulation) async throws -> Subject,
    perform:
        @escaping @Sendable (_ subject: Subject, _ operation: Specification.Operation) async throws ->
        Specification.Outcome,
    fileID: StaticString = #fileID, line: UInt = #line
) async throws -> ExplorationSummary {
    try await exploreOperations(
        operations, programs: programs, schedules: schedules, time: time, ordering: ordering, machine: machine,
        granularity: granularity, driving: driving, stepLimit: stepLimit,
        of: { simulation in (subject: try await subject(simulation), history: History(specification)) },
        perform: { made, operation, task in
            let outcome = try await made.history.record(task, operation) { try await perform(made.subject, operation) }
            Simulation.current?.log("gets \(Wording.of(outcome))")
        },
        check: { made in try made.history.requireLinearizable() },
        fileID: fileID, line: line)
}

/// Draws programs of operations, runs each under many schedules, and throws the first that fails a check of your own.
///
/// For objects whose promise isn't a sequential specification, and for operations whose arguments depend on what happened before.
/// Otherwise like the function that compares with a specification.
///
/// - Parameters:
///   - operations: The operations that programs are made of. One that is listed twice is drawn twice as often.
///   - programs: Which programs.
///   - schedules: The schedules of each program.
///   - time: When the simulation's clock moves.
///   - ordering: In which order jobs run that have reached an actor.
///   - machine: How long a task that could run may be left without a processor.
///   - granularity: Where tasks may be switched.
///   - driving: Which code to drive.
///   - stepLimit: How many steps one execution may have.
///   - subject: Creates the object, a new one for each execution.
///   - perform: Performs an operation as a task, whose name it gets. Several tasks call it at the same time.
///   - check: Throws if the object broke a promise; called when all tasks have ended.
///   - fileID: The file of the call, which a report after a crash names.
///   - line: The line of the call.
/// - Returns: The summary of all programs.
/// - Throws: A ``ScheduleFailure`` with the failing program, an ``ExplorationProblem`` if there is no program to
///   run, or `CancellationError` if the calling task is cancelled.
@discardableResult
public func exploreOperations<Operation: Sendable, Subject: Sendable>(
    _ operations: [Operation],
    programs: Programs = .random(),
    schedules: Strategy = .mixed(schedules: 100),
    time: TimeModel = .whenIdle,
    ordering: ActorOrdering = .arrival,
    machine: MachineModel = .fair,
    granularity: Granularity = .jobs,
    driving: Driving = .preferred,
    stepLimit: Int = 10_000,
    of subject: @escaping @Sendable (_ simulation: Simulation) async throws -> Subject,
    perform: @escaping @Sendable (_ subject: Subject, _ operation: Operation, _ task: String) async throws -> Void,
    check: @escaping @Sendable (_ subject: Subject) async throws -> Void,
    fileID: StaticString = #fileID, line: UInt = #line
) async throws -> ExplorationSummary {
    // Counts as one exploration of its test, however many programs there are.
    var (overrides, number) = Simulation.current == nil ? Overrides.current.beginExploration() : (Overrides(), 1)
    overrides.number = number
    let programs = programs.applied(overrides, schedules)
    overrides.schedules = nil
    let exploration = ProgramExploration(
        words: operations.map { Wording.of($0) }, programs: programs,
        schedules: overrides.applied(to: schedules), granularity: granularity, overrides: overrides
    ) { program in
        try await explore(
            schedules, time: time, ordering: ordering, machine: machine, granularity: granularity, driving: driving,
            stepLimit: stepLimit,
            { simulation in
                let subject = try await subject(simulation)
                let tasks = program.tasks.enumerated().map { number, picks in
                    let name = "task \(number + 1)"
                    return simulation.spawn(name) {
                        for operation in picks.map({ operations[$0] }) {
                            simulation.log(Wording.of(operation))
                            try await perform(subject, operation, name)
                        }
                    }
                }
                for task in tasks { try await task.value }
                try await check(subject)
            }, fileID: fileID, line: line)
    }
    return try await exploration.run()
}
