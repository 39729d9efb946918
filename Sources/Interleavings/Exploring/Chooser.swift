import TokenServiceConcurrency

/// Makes the decisions of one execution.
///
/// Candidate 0 is the task that ran last, if it can go on; else the oldest.
enum Chooser: Sendable {
    case random(SplitMix64)
    case priorities(Priorities)
    case depthFirst(DepthFirst)
    case replay(Replay)

    /// The first candidate each time.
    static let usual = Chooser.replay(Replay(choices: []))

    /// - Parameters:
    ///   - tasks: The candidates' tasks, two at least.
    ///   - offer: What is special about them. A walk picks an overdue one; a search does not have to.
    mutating func choose(among tasks: [Int], _ offer: Engine.State.Offer) -> Int {
        switch self {
        case .random(var random):
            guard !offer.isOverdue else { return 0 }
            defer { self = .random(random) }
            return random.below(tasks.count)
        case .priorities(var priorities):
            // Moved out and back, not copied.
            self = .usual
            defer { self = .priorities(priorities) }
            guard !offer.isOverdue else {
                priorities.favour(tasks[0])
                return 0
            }
            return priorities.choose(among: tasks)
        case .depthFirst(var search):
            self = .usual
            defer { self = .depthFirst(search) }
            return search.choose(tasks.count, current: offer.current)
        case .replay(var replay):
            self = .usual
            defer { self = .replay(replay) }
            if !offer.isOverdue { replay.decisions += 1 }
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
            self = .usual
            defer { self = .priorities(priorities) }
            return priorities.random.below(count)
        case .depthFirst(var search):
            self = .usual
            defer { self = .depthFirst(search) }
            return search.value(below: count)
        case .replay(var replay):
            self = .usual
            defer { self = .replay(replay) }
            return replay.choose(count)
        }
    }

    /// How many decisions between tasks it made, if it counts them.
    var decisions: Int {
        switch self {
        case .priorities(let priorities): priorities.decisions
        case .replay(let replay): replay.decisions
        case .random, .depthFirst: 0
        }
    }
}

/// Follows recorded choices, then always picks the first candidate.
struct Replay: Sendable {
    private let choices: [Int]
    private var next = 0
    private var divergence: String?
    /// How many candidates each choice had.
    private(set) var counts: [Int] = []
    var decisions = 0

    init(choices: [Int]) {
        self.choices = choices
    }

    mutating func choose(_ count: Int) -> Int {
        counts.append(count)
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
