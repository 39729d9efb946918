/// Explores programs one after another, and shrinks the first failing one.
struct ProgramExploration {
    /// The description of each operation.
    let words: [String]
    let programs: Programs
    let schedules: Strategy
    let granularity: Granularity
    let overrides: Overrides
    /// Explores one program.
    let explore: (Program) async throws -> ExplorationSummary

    func run() async throws -> ExplorationSummary {
        let drawn = try programs.drawn(from: words.count)
        if programs.seed != nil, schedules.mostSchedules == nil {
            throw ExplorationProblem(
                .divergence,
                detail: "a schedule belongs to one program; pass that, too: programs: .replay(…) or INTERLEAVINGS_PROGRAM")
        }
        var summary = ExplorationSummary(granularity: granularity)
        summary.programSeed = programs.seed
        for (index, program) in drawn.enumerated() {
            if let failure = try await failure(of: program, &summary) {
                throw try await shrunk(failure, program, "Program \(index + 1) of \(drawn.count)")
            }
        }
        return summary
    }

    /// - Parameter isReported: Whether the failure is to be reported, so that an escape must be ruled out.
    private func failure(
        of program: Program, _ summary: inout ExplorationSummary, isReported: Bool = true
    ) async throws -> ScheduleFailure? {
        var overrides = overrides
        overrides.program = program
        overrides.waitsForOutside = isReported
        do {
            let done = try await Overrides.$current.withValue(overrides) { try await explore(program) }
            summary.add(inWords(program, "").lines.joined(separator: "; "), done)
            return nil
        } catch let failure as ScheduleFailure {
            return failure
        }
    }

    /// Leaves out tasks and operations while some schedule fails in the same way.
    private func shrunk(_ failure: ScheduleFailure, _ program: Program, _ place: String) async throws -> ScheduleFailure {
        var (best, smallest, ignored) = (failure, program, ExplorationSummary(granularity: granularity))
        let comesFromOutside = (failure.underlying as? ExplorationProblem)?.code == .escape
        var candidates = schedules.mostSchedules == nil || programs.seed == nil ? [] : program.smaller[...]
        while let candidate = candidates.popFirst() {
            let again = try await self.failure(of: candidate, &ignored, isReported: comesFromOutside)
            guard let again, again.kind == failure.kind else { continue }
            (best, smallest, candidates) = (again, candidate, candidate.smaller[...])
        }
        // Run it once more, with the wait in real time that was skipped while shrinking.
        if smallest != program { best = try await self.failure(of: smallest, &ignored) ?? best }
        let seed = programs.seed.map { " (seed \($0))" } ?? ""
        let change = smallest == program ? "" : ", shrunk from \(program.count) operations to \(smallest.count)"
        best.program = smallest
        best.programInWords = inWords(smallest, "\(place)\(seed)\(change)")
        return best
    }

    private func inWords(_ program: Program, _ heading: String) -> ProgramInWords {
        ProgramInWords(heading: heading, operations: program.tasks.map { $0.map { words[$0] } })
    }
}

/// A generated program in readable form.
struct ProgramInWords: Sendable {
    /// Which of the programs it is, with their seed, and whether it was shrunk.
    let heading: String
    /// Each task's operations.
    let operations: [[String]]

    var tasks: [(name: String, operations: [String])] {
        operations.enumerated().map { (name: "task \($0 + 1)", operations: $1) }
    }

    var lines: [String] { tasks.map { "\($0.name): \($0.operations.joined(separator: ", "))" } }
}
