import TokenServiceConcurrency

/// Which programs of operations are explored: drawn at random, or one that a report printed.
public struct Programs: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case random(Int, tasks: ClosedRange<Int>, operationsPerTask: ClosedRange<Int>, seed: UInt64)
        case replay(Program)
    }

    let kind: Kind

    /// Programs whose size and operations are drawn, each different from the others.
    ///
    /// If the operations allow fewer programs, there are fewer.
    ///
    /// - Parameters:
    ///   - count: How many programs.
    ///   - tasks: How many tasks a program has, 1 at least.
    ///   - operationsPerTask: How many operations each task performs one after another, 1 at least.
    ///   - seed: The seed of the random numbers; the same seed draws the same programs.
    public static func random(
        _ count: Int = 50, tasks: ClosedRange<Int> = 2...3, operationsPerTask: ClosedRange<Int> = 1...3, seed: UInt64 = 1
    ) -> Programs {
        Programs(kind: .random(count, tasks: tasks, operationsPerTask: operationsPerTask, seed: seed))
    }

    /// One program, as a failure prints it; it isn't shrunk.
    ///
    /// - Parameter program: The operations that each task performs, by their places in the list: `"0.1|0"` has two tasks, the first
    ///   with operations 0 and 1. Any other text is an ``ExplorationProblem`` of the exploration.
    public static func replay(_ program: String) -> Programs {
        Programs(kind: .replay(Program(stringLiteral: program)))
    }

    /// Returns the programs for a list of this many operations.
    ///
    /// - Throws: An ``ExplorationProblem`` if there would be none, or a program doesn't fit the operations.
    func drawn(from operations: Int) throws -> [Program] {
        guard operations > 0 else { throw Self.nothing("there are no operations to build programs from") }
        switch kind {
        case .replay(let program):
            if let problem = program.problem(with: operations) { throw ExplorationProblem(.divergence, detail: problem) }
            return [program]
        case .random(let count, let tasks, let length, let seed):
            guard count > 0 else { throw Self.nothing("\(count) programs were asked for") }
            guard tasks.lowerBound > 0 else {
                throw Self.nothing("programs may have \(tasks.lowerBound) tasks, but need at least 1")
            }
            guard length.lowerBound > 0 else {
                throw Self.nothing("a task may have \(length.lowerBound) operations, but needs at least 1")
            }
            var (random, programs, seen) = (SplitMix64(seed: seed), [Program](), Set<Program>())
            // After this many repetitions, probably all programs have been drawn.
            var repeats = 0
            while programs.count < count, repeats < 1_000 {
                let program = Program.random(operations, tasks, length, &random)
                if seen.insert(program).inserted { programs.append(program) } else { repeats += 1 }
            }
            return programs
        }
    }

    private static func nothing(_ detail: String) -> ExplorationProblem {
        ExplorationProblem(.nothingToExplore, detail: detail)
    }

    /// Returns programs of the same size with a test run's settings: its seed, and enough programs for its number of schedules.
    func applied(_ overrides: Overrides, _ schedules: Strategy) -> Programs {
        if let program = overrides.program { return Programs(kind: .replay(program)) }
        guard case .random(let count, let tasks, let length, let seed) = kind else { return self }
        var most = count
        if let total = overrides.schedules, schedules.seed != nil, let each = schedules.mostSchedules, each > 0 {
            most = max(total / each, 1)
        }
        return .random(most, tasks: tasks, operationsPerTask: length, seed: overrides.seed ?? seed)
    }

    /// The seed; `nil`: nothing is drawn.
    var seed: UInt64? { if case .random(_, _, _, let seed) = kind { seed } else { nil } }
}

/// The operations that each task performs, by their places in a list: `"0.1|0"` has two tasks, the first with operations 0 and 1.
package struct Program: Sendable, Hashable, Described, ExpressibleByStringLiteral {
    /// Each task's operations, counted from 0.
    package let tasks: [[Int]]

    /// Creates a program of each task's operations.
    package init(tasks: [[Int]]) {
        self.tasks = tasks
    }

    /// Reads a program from its description; `nil` if the text is not a program.
    package init?(_ description: String) {
        var tasks: [[Int]] = []
        for task in description.split(separator: "|", omittingEmptySubsequences: false) {
            let picks = task.split(separator: ".", omittingEmptySubsequences: false).map { Int($0) ?? -1 }
            guard picks.allSatisfy({ $0 >= 0 }) else { return nil }
            tasks.append(picks)
        }
        self.init(tasks: tasks)
    }

    /// Reads a program from its description; any other text gives a program without tasks, which can't be replayed.
    package init(stringLiteral value: String) {
        self = Program(value) ?? Program(tasks: [])
    }

    /// The operations of a task separated by periods, the tasks by vertical bars.
    package var text: String { tasks.map { $0.map(String.init).joined(separator: ".") }.joined(separator: "|") }

    /// How many operations all tasks together perform.
    var count: Int { tasks.reduce(0) { $0 + $1.count } }

    static func random(
        _ operations: Int, _ tasks: ClosedRange<Int>, _ length: ClosedRange<Int>, _ random: inout SplitMix64
    ) -> Program {
        let count = tasks.lowerBound + random.below(tasks.count)
        var drawn: [[Int]] = []
        for _ in 0..<count {
            let length = length.lowerBound + random.below(length.count)
            drawn.append((0..<length).map { _ in random.below(operations) })
        }
        return Program(tasks: drawn)
    }

    /// Why it can't be run with this many operations; `nil`: it can.
    func problem(with operations: Int) -> String? {
        if tasks.isEmpty { return "the program has no tasks; a report prints one such as \"0.1|0\"" }
        guard let wrong = tasks.joined().first(where: { !(0..<operations).contains($0) }) else { return nil }
        return "the program \(self) has operation \(wrong), but the list has operations 0 to \(operations - 1)"
    }

    /// Programs with less: without a task, then without a beginning or an end of all tasks or of one, the longest first, then without
    /// one operation.
    var smaller: [Program] {
        var smaller = tasks.count < 2 ? [] : tasks.indices.map { dropping($0) }
        for length in (1..<max(longest, 1)).reversed() {
            smaller.append(Program(tasks: tasks.map { Array($0.suffix(max($0.count - length, 1))) }))
            smaller.append(Program(tasks: tasks.map { Array($0.prefix(max($0.count - length, 1))) }))
            for task in tasks.indices where tasks[task].count > length {
                smaller.append(changing(task) { $0.removeFirst(length) })
                smaller.append(changing(task) { $0.removeLast(length) })
            }
        }
        for task in tasks.indices where tasks[task].count > 2 {
            let inner = tasks[task].indices.dropFirst().dropLast()
            smaller += inner.map { operation in changing(task) { _ = $0.remove(at: operation) } }
        }
        var seen: Set<Program> = []
        return smaller.filter { $0.count < count && seen.insert($0).inserted }
    }

    private var longest: Int { tasks.map(\.count).max() ?? 0 }

    private func changing(_ task: Int, _ change: (inout [Int]) -> Void) -> Program {
        var tasks = tasks
        change(&tasks[task])
        return Program(tasks: tasks)
    }

    private func dropping(_ task: Int) -> Program {
        var tasks = tasks
        tasks.remove(at: task)
        return Program(tasks: tasks)
    }
}
