/// Follows choices made before; after their end the first candidate.
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
        divergence = divergence ?? "choice \(next) picks number \(Schedule.text(of: choice)), counted from 0, of only \(count)"
        return 0
    }

    /// What did not fit, if anything.
    var problem: ExplorationProblem? {
        let unused = choices.count - next
        guard let detail = divergence ?? (unused > 0 ? "its last \(unused) of \(choices.count) choices never came up" : nil)
        else { return nil }
        return ExplorationProblem(.divergence, detail: detail)
    }
}
