/// Shrinking: drops and zeroes choices while the same failure remains.
extension Exploration {
    /// How many executions a failure is worth, and how many steps.
    private static let budget = (executions: 500, steps: 500_000)

    /// Returns choices that fail in the same way, with fewer switches and fewer of them.
    mutating func shrink(_ outcome: Execution.Outcome) -> [Int] {
        var best = Schedule(choices: outcome.choices).choices
        var budget = Self.budget
        var hasProgress = true
        while hasProgress {
            hasProgress = false
            for candidate in Self.smaller(than: best) where budget.executions > 0 && budget.steps > 0 {
                let shrunk = execute(.replay(Replay(choices: candidate)))
                budget.executions -= 1
                budget.steps -= shrunk.steps
                // The choices really made.
                let choices = Schedule(choices: shrunk.choices).choices
                guard shrunk.failureKind == outcome.failureKind, Self.cost(choices) < Self.cost(best) else { continue }
                best = choices
                hasProgress = true
                break
            }
        }
        return best
    }

    /// Halves, quarters … single choices left out or replaced by 0; then smaller picks.
    private static func smaller(than choices: [Int]) -> [[Int]] {
        var result: [[Int]] = []
        var size = max(choices.count / 2, 1)
        while size >= 1, !choices.isEmpty {
            for start in stride(from: 0, to: choices.count, by: size) {
                let end = min(start + size, choices.count)
                let (before, after) = (Array(choices[..<start]), choices[end...])
                result.append(Array(before + after))
                if choices[start..<end].contains(where: { $0 > 0 }) {
                    result.append(before + [Int](repeating: 0, count: end - start) + after)
                }
            }
            size /= 2
        }
        for (index, choice) in choices.enumerated() where choice > 1 {
            result.append(choices[..<index] + [1] + choices[(index + 1)...])
        }
        return result.map { Schedule(choices: $0).choices }
    }

    /// Few switches count before few choices.
    private static func cost(_ choices: [Int]) -> (switches: Int, count: Int, sum: Int) {
        (choices.count { $0 > 0 }, choices.count, choices.reduce(0, +))
    }
}
