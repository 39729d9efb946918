import TokenServiceConcurrency

/// Makes the decisions of one execution.
///
/// Candidate 0 is the task that ran last, if it can continue, or else the oldest one.
enum Chooser: Sendable {
    case random(SplitMix64)
    case priorities(Priorities)
    case depthFirst(DepthFirst)
    case replay(Replay)

    /// The first candidate each time.
    static let usual = Chooser.replay(Replay(choices: []))

    /// - Parameters:
    ///   - tasks: The candidates' tasks, two at least.
    ///   - offer: Their properties. A walk picks an overdue candidate; a search does not have to.
    mutating func choose(among tasks: [Int], _ offer: Engine.State.Offer) -> Int {
        change {
            offer.isOverdue ? 0 : $0.below(tasks.count)
        } priorities: {
            if offer.isOverdue { $0.favour(tasks[0]) }
            return offer.isOverdue ? 0 : $0.choose(among: tasks)
        } search: {
            $0.choose(tasks.count, current: offer.current)
        } replay: {
            if !offer.isOverdue { $0.decisions += 1 }
            return $0.choose(tasks.count)
        }
    }

    /// Returns a value that the scenario asked for.
    mutating func value(below count: Int) -> Int {
        change {
            $0.below(count)
        } priorities: {
            $0.random.below(count)
        } search: {
            $0.value(below: count)
        } replay: {
            $0.choose(count)
        }
    }

    /// Moves the value out and back, so that it isn't copied.
    private mutating func change(
        random: (inout SplitMix64) -> Int, priorities: (inout Priorities) -> Int, search: (inout DepthFirst) -> Int,
        replay: (inout Replay) -> Int
    ) -> Int {
        let taken = self
        self = .usual
        switch consume taken {
        case .random(var state):
            defer { self = .random(state) }
            return random(&state)
        case .priorities(var state):
            defer { self = .priorities(state) }
            return priorities(&state)
        case .depthFirst(var state):
            defer { self = .depthFirst(state) }
            return search(&state)
        case .replay(var state):
            defer { self = .replay(state) }
            return replay(&state)
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
    let choices: [Int]
    private var next = 0
    private var divergence: String?
    /// How many candidates each choice had.
    private(set) var counts: [Int] = []
    var decisions = 0
    /// The step before which the execution stops; `nil`: it runs to its end.
    let stop: Int?
    let hold: Hold?

    /// From a step on, the scenario's own task goes on only when nothing else can run.
    struct Hold: Sendable {
        let from: Int
        /// Whether time moves before it goes on.
        let movesTime: Bool

        /// Ends even if something else can always run.
        func isOn(after steps: Int, stepLimit: Int) -> Bool { steps + 1 >= from && steps < from + stepLimit / 4 }
    }

    init(choices: [Int], stop: Int? = nil, hold: Hold? = nil) {
        self.choices = choices
        self.stop = stop
        self.hold = hold
    }

    /// The next choice.
    func upcoming(among count: Int) -> Int {
        count > 1 && next < choices.count && choices[next] < count ? choices[next] : 0
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
    func problem(after steps: Int) -> ExplorationProblem? {
        let unused = choices.count - next
        let rest = unused > 0 ? "the last \(unused) of its \(choices.count) choices were never used" : nil
        let stop = stop.flatMap { $0 > steps ? "it ends after step \(steps), but was to stop before step \($0)" : nil }
        return (divergence ?? rest ?? stop).map { ExplorationProblem(.divergence, detail: $0) }
    }
}
