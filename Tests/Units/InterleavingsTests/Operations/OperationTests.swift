@testable import Interleavings
import Testing
import TokenServiceConcurrency

/// Reads, lets others in, and writes.
private actor LossyCounter {
    private var value = 0

    func increment() async -> Int {
        let before = value
        await Task.yield()
        value = before + 1
        return value
    }

    func read() -> Int { value }
}

private actor RightCounter {
    private var value = 0

    func increment() -> Int {
        value += 1
        return value
    }

    func read() -> Int { value }
}

/// Reads the first item, lets others in, and removes one.
private actor LossyQueue {
    private var items: [Int]

    init(_ items: [Int]) {
        self.items = items
    }

    func add(_ item: Int) { items.append(item) }

    func take() async -> Int? {
        guard let first = items.first else { return nil }
        await Task.yield()
        if !items.isEmpty { items.removeFirst() }
        return first
    }
}

/// Returns the failure from exploring a counter that loses updates.
private func lostUpdate(
    programs: Programs = .random(), schedules: Strategy = .mixed(schedules: 100), time: TimeModel = .whenIdle
) async throws -> ScheduleFailure {
    let error = await #expect(throws: ScheduleFailure.self) {
        try await exploreOperations(
            [.read, .increment], against: Counter(), programs: programs, schedules: schedules, time: time
        ) { _ in
            LossyCounter()
        } perform: { counter, operation in
            switch operation {
            case .increment: await counter.increment()
            case .read: await counter.read()
            }
        }
    }
    return try #require(error)
}

@Suite struct `Operations that are generated` {
    @Test func `shrink by whole tasks first, then from the beginnings and the ends of tasks`() {
        let program: Program = "0.1.2|3.4.5|6.7.8"
        #expect(program.smaller.prefix(5) == ["3.4.5|6.7.8", "0.1.2|6.7.8", "0.1.2|3.4.5", "2|5|8", "0|3|6"])
        #expect(Set(program.smaller).isSuperset(of: ["1.2|4.5|7.8", "0.1.2|5|6.7.8", "0.2|3.4.5|6.7.8"]))
        #expect(("0.1" as Program).smaller == ["1", "0"] && ("0" as Program).smaller.isEmpty)
    }

    @Test func `find a lost update, and shrink to two increments in two tasks`() async throws {
        let failure = try await lostUpdate()
        #expect(failure.program == "1|1")
        #expect(failure.underlying is NotLinearizable)
        let report = "\(failure)"
        #expect(report.contains("(seed 1), shrunk from "), "\(report)")
        #expect(report.contains(" to 2:\n    task 1: increment\n    task 2: increment\nSchedule "), "\(report)")
        #expect(report.contains("Not linearizable"), "\(report)")
        #expect(failure.diagram.contains("gets 1"))
        // The whole reason is above the diagram, and only its beginning in the diagram.
        #expect(report.split(separator: "must come next").count == 2, "\(report)")
    }

    @Test func `find an item that a queue hands out twice`() async throws {
        let error = await #expect(throws: ScheduleFailure.self) {
            try await exploreOperations([.add(1), .add(2), .take], against: Queue(items: [7])) { _ in
                LossyQueue([7])
            } perform: { queue, operation in
                switch operation {
                case .add(let item):
                    await queue.add(item)
                    return nil
                case .take: return await queue.take()
                }
            }
        }
        #expect(error?.program == "2|2")
    }

    @Test func `fail again when program and schedule are replayed, in code or by variables`() async throws {
        let failure = try await lostUpdate()
        let program = try #require(failure.program)
        let line = "exploreOperations(…, programs: .replay(\"\(program)\"), schedules: .replay(\"\(failure.schedule)\")"
        #expect(failure.replayLine.contains(line), "\(failure.replayLine)")
        #expect(failure.variables.contains("INTERLEAVINGS_PROGRAM='\(program)' INTERLEAVINGS_REPLAY='\(failure.schedule)'"))
        let again = try await lostUpdate(
            programs: .replay("\(program)"), schedules: .replay(failure.schedule), time: failure.time)
        var overrides = Overrides(replay: Schedule(failure.schedule), time: failure.time)
        overrides.program = program
        let byVariables = try await Overrides.$current.withValue(overrides) { try await lostUpdate() }
        for replayed in [again, byVariables] {
            #expect(replayed.program == program)
            #expect(replayed.diagram == failure.diagram)
        }
    }

    @Test func `pass for a right actor, with programs that differ`() async throws {
        func explore(seed: UInt64) async throws -> ExplorationSummary {
            try await exploreOperations(
                [.read, .increment], against: Counter(), programs: .random(20, seed: seed), schedules: .mixed(schedules: 20)
            ) { _ in
                RightCounter()
            } perform: { counter, operation in
                switch operation {
                case .increment: await counter.increment()
                case .read: await counter.read()
                }
            }
        }
        let (first, again, other) = try await (explore(seed: 1), explore(seed: 1), explore(seed: 2))
        #expect(Set(first.programs).count == 20)
        #expect(first.programs == again.programs)
        #expect(first.programs != other.programs)
        #expect(first.programs.allSatisfy { $0.hasPrefix("task 1: ") && $0.contains("; task 2: ") })
        #expect("\(first)".hasPrefix("20 programs (seed 1), 400 schedules"))
        #expect("\(first)".hasSuffix("; not all orders of jobs: the schedules are a sample") && !first.ranAllOrders)
    }

    @Test func `have at most as many programs as there can be, if more are asked for`() async throws {
        let summary = try await exploreOperations(
            [.increment, .read], against: Counter(), programs: .random(50, tasks: 2...2, operationsPerTask: 1...1),
            schedules: .exhaustive()
        ) { _ in
            RightCounter()
        } perform: { counter, operation in
            switch operation {
            case .increment: await counter.increment()
            case .read: await counter.read()
            }
        }
        #expect(summary.programs.count == 4)
        #expect(summary.ranAllOrders)
    }

    @Test func `fail if one of them never returns, or throws`() async throws {
        let error = await #expect(throws: ScheduleFailure.self) {
            try await exploreOperations([0, 1]) { _ in
            } perform: { _, operation, _ in
                if operation == 1 { await waitForEver() }
            } check: { _ in
            }
        }
        #expect((error?.underlying as? ExplorationProblem)?.code == .deadlock)
        #expect(error?.program == "1")
        let thrown = await #expect(throws: ScheduleFailure.self) {
            try await exploreOperations([0, 1]) { _ in
            } perform: { _, operation, _ in
                if operation == 1 { throw Refused() }
            } check: { _ in
            }
        }
        #expect(thrown?.underlying is Refused)
        #expect(thrown?.program == "1")
    }

    private struct Refused: Error {}

    @Test func `can be checked by a rule that the test gives`() async throws {
        let error = await #expect(throws: ScheduleFailure.self) {
            try await exploreOperations(["enter", "pass"]) { simulation in
                (simulation: simulation, inside: Tally(), outside: Tally(), most: Journal())
            } perform: { room, operation, task in
                guard operation == "enter" else { return }
                let inside = room.inside.next() - room.outside.value
                if inside > 1 { room.most.note(task) }
                await Task.yield()
                room.outside.next()
            } check: { room in
                try room.simulation.require(room.most.count == 0, "one at a time")
            }
        }
        #expect(error?.program == "0|0")
        #expect(error?.description.contains("one at a time") == true)
    }

    @Test(arguments: [.fair, .busy] as [MachineModel])
    func `run on the machine that the test asks for`(_ machine: MachineModel) async throws {
        func explore(_ strategy: Strategy) async throws {
            try await exploreOperations(
                ["set", "poll"], programs: .replay("0|1"), schedules: strategy, machine: machine
            ) { simulation in
                (simulation: simulation, flag: Tally())
            } perform: { subject, operation, _ in
                if operation == "set" {
                    subject.flag.next()
                } else {
                    for _ in 0..<1_000 where subject.flag.value == 0 { await Task.yield() }
                    try subject.simulation.require(subject.flag.value == 1, "a thousand yields are enough")
                }
            } check: { _ in
            }
        }
        guard machine == .busy else { return try await explore(.mixed(schedules: 100)) }
        let error = await #expect(throws: ScheduleFailure.self) { try await explore(.mixed(schedules: 100)) }
        let failure = try #require(error)
        #expect(failure.replayLine.contains("machine: .busy"), "\(failure.replayLine)")
        await #expect(throws: ScheduleFailure.self) { try await explore(.replay(failure.schedule)) }
    }

    @Test(
        arguments: [
            (.random(0), 2, "Nothing to explore: 0 programs were asked for."),
            (.random(tasks: 0...2), 2, "Nothing to explore: programs may have 0 tasks, but need at least 1."),
            (.random(operationsPerTask: 0...2), 2, "Nothing to explore: a task may have 0 operations, but needs at least 1."),
            (.random(), 0, "Nothing to explore: there are no operations to build programs from."),
            (.replay("0.2|1"), 2, "the program 0.2|1 has operation 2, but the list has operations 0 to 1"),
            (.replay("one"), 2, "the program has no tasks; a report prints one such as \"0.1|0\""),
        ] as [(Programs, Int, String)])
    func `need at least one operation in at least one task`(_ programs: Programs, _ operations: Int, _ message: String)
        async throws
    {
        let problem = await #expect(throws: ExplorationProblem.self) {
            try await exploreOperations(Array(0..<operations), programs: programs) { _ in
            } perform: { _, _, _ in
            } check: { _ in
            }
        }
        #expect(problem?.description.contains(message) == true, "\(String(describing: problem))")
    }

    @Test func `are replayed only with the schedule's program`() async throws {
        let problem = await #expect(throws: ExplorationProblem.self) {
            try await exploreOperations([0], schedules: .replay("0.1")) { _ in
            } perform: { _, _, _ in
            } check: { _ in
            }
        }
        #expect(problem?.code == .divergence)
        #expect(problem?.detail.contains("INTERLEAVINGS_PROGRAM") == true)
    }

    @Test func `have as many programs as the run's number of schedules needs, from the run's seed`() async throws {
        func explore() async throws -> ExplorationSummary {
            try await exploreOperations([0, 1, 2], schedules: .mixed(schedules: 4)) { _ in
            } perform: { _, _, _ in
            } check: { _ in
            }
        }
        let usual = try await explore()
        let other = try await Overrides.$current.withValue(Overrides(schedules: 40, seed: 2)) { try await explore() }
        #expect(other.programs.count == 10)
        #expect(other.schedules == 40)
        #expect(other.programSeed == 2)
        #expect(Array(usual.programs.prefix(10)) != other.programs)
    }

    @Test func `count as one exploration of their test`() async throws {
        var overrides = Overrides()
        overrides.explorations = ExplorationCount()
        try await Overrides.$current.withValue(overrides) {
            try await explore(.random(schedules: 1)) { simulation in simulation.spawn("a") {} }
            let failure = try await lostUpdate()
            #expect(failure.variables.contains("INTERLEAVINGS_REPLAY='2:"))
        }
    }

    @Test(arguments: [("0", [[0]]), ("0.1|0", [[0, 1], [0]]), ("12|3|4", [[12], [3], [4]])])
    func `are written as numbers`(text: String, tasks: [[Int]]) throws {
        let program = try #require(Program(text))
        #expect(program.tasks == tasks)
        #expect("\(program)" == text)
    }

    @Test(arguments: ["", "|", "0|", "0.|1", "a", "-1", "0,1"]) func `aren't read from any other text`(text: String) {
        #expect(Program(text) == nil)
    }
}
