import TokenServiceConcurrency

/// Makes the decisions of one execution.
///
/// Candidate 0 is the task that ran last, if it can go on; else the oldest.
enum Chooser: Sendable {
    case random(SplitMix64)
    case priorities(Priorities)
    case depthFirst(DepthFirst)
    case replay(Replay)

    /// - Parameters:
    ///   - tasks: The candidates' tasks, two at least.
    ///   - preempts: Whether candidate 0 is the task that ran last, so that any other preempts it.
    mutating func choose(among tasks: [Int], preempts: Bool) -> Int {
        switch self {
        case .random(var random):
            defer { self = .random(random) }
            return random.below(tasks.count)
        case .priorities(var priorities):
            // Moved out and back, not copied.
            self = .replay(Replay(choices: []))
            defer { self = .priorities(priorities) }
            return priorities.choose(among: tasks)
        case .depthFirst(var search):
            self = .replay(Replay(choices: []))
            defer { self = .depthFirst(search) }
            return search.choose(tasks.count, preempts: preempts)
        case .replay(var replay):
            defer { self = .replay(replay) }
            return replay.choose(tasks.count)
        }
    }

    /// A value that the scenario asked for.
    mutating func value(below count: Int) -> Int {
        switch self {
        case .random(var random):
            defer { self = .random(random) }
            return random.below(count)
        case .priorities(var priorities):
            self = .replay(Replay(choices: []))
            defer { self = .priorities(priorities) }
            return priorities.random.below(count)
        case .depthFirst(var search):
            self = .replay(Replay(choices: []))
            defer { self = .depthFirst(search) }
            return search.value(below: count)
        case .replay(var replay):
            defer { self = .replay(replay) }
            return replay.choose(count)
        }
    }

    /// Notes that a task was picked without a choice, because it was passed over too often.
    mutating func favour(_ task: Int) {
        guard case .priorities(var priorities) = self else { return }
        priorities.favour(task)
        self = .priorities(priorities)
    }
}

/// Follows recorded choices, then always picks the first candidate.
struct Replay: Sendable {
    private let choices: [Int]
    private var next = 0
    private var divergence: String?

    init(choices: [Int]) {
        self.choices = choices
    }

    mutating func choose(_ count: Int) -> Int {
        guard next < choices.count else { return 0 }
        let choice = choices[next]
        next += 1
        if choice < count { return choice }
        let pick = Schedule.text(of: choice)
        divergence = divergence ?? "choice \(next) picks candidate \(pick), counted from 0, of only \(count)"
        return 0
    }

    /// The mismatch between the choices and the execution; `nil`: they fit.
    var problem: ExplorationProblem? {
        let unused = choices.count - next
        guard let detail = divergence ?? (unused > 0 ? "the last \(unused) of its \(choices.count) choices were never used" : nil)
        else { return nil }
        return ExplorationProblem(.divergence, detail: detail)
    }
}
