/// A failing schedule with as few switches as could be found.
struct Shrunk: Sendable {
    /// Whether a schedule with fewer switches could fail in the same way; a switch is a choice other than the first.
    enum Minimality: Sendable, Equatable {
        /// All schedules with fewer switches ran, and none failed in that way.
        case proven(tried: Int)
        /// All with at most this many switches ran, and none failed in that way.
        case upTo(_ switches: Int, tried: Int)
        /// Not even the usual order was tried.
        case unknown
    }

    let choices: [Int]
    let minimality: Minimality

    /// Returns the error; if only some schedules deadlock, without the suspicion of an outside cause.
    func clarified(_ error: any Error) -> any Error {
        guard let problem = error as? ExplorationProblem, problem.code == .deadlock, problem.detail.isEmpty else { return error }
        switch minimality {
        case .proven(let tried) where tried > 0, .upTo(_, let tried) where tried > 0:
            return problem.detailed(" In other orders they don't wait forever.")
        case .proven, .upTo, .unknown: return error
        }
    }
}

/// Shrinking: drops and zeroes choices as long as the same failure remains, then runs all schedules with fewer switches.
extension Exploration {
    /// The most executions and steps that one part of shrinking may take.
    private struct Budget {
        var executions: Int
        var steps = 500_000

        var isLeft: Bool { executions > 0 && steps > 0 }
    }

    /// Returns choices that fail in the same way, with fewer switches and fewer of them.
    mutating func shrink(_ outcome: Execution.Outcome) -> Shrunk {
        let kind = outcome.failureKind
        let best = shorten(Schedule(choices: outcome.choices).choices, kind: kind)
        var budget = Budget(executions: 2_000)
        var tried = 0
        // The schedules with this many switches, which are prefixes of those with one more. With each switch their number grows
        // by a factor of their length.
        var level: [[Int]] = [[]]
        for switches in 0..<Self.switches(best) {
            var next: [[Int]] = []
            for choices in level {
                guard budget.isLeft else {
                    return Shrunk(choices: best, minimality: switches == 0 ? .unknown : .upTo(switches - 1, tried: tried))
                }
                let attempt = execute(.replay(Replay(choices: choices)))
                budget.executions -= attempt.isRepeatable ? 1 : budget.executions
                budget.steps -= attempt.steps
                if attempt.failureKind == kind {
                    return Shrunk(choices: shorten(choices, kind: kind), minimality: .proven(tried: tried))
                }
                tried += 1
                guard case .replay(let replay) = attempt.chooser else { continue }
                Self.add(to: &next, choices, replay.counts, most: budget.executions)
            }
            level = next
        }
        return Shrunk(choices: best, minimality: .proven(tried: tried))
    }

    /// Adds the schedules with one switch more, placed after all others; if there are too many, stops at one more than can be
    /// tried.
    private static func add(to next: inout [[Int]], _ choices: [Int], _ counts: [Int], most: Int) {
        for place in choices.count..<max(counts.count, choices.count) {
            for pick in 1..<max(counts[place], 1) where next.count <= most {
                // Don't use `+`: for two empty arrays it writes to the storage shared by all empty arrays, which a sanitizer
                // reports.
                next.append((0...place).map { $0 == place ? pick : $0 < choices.count ? choices[$0] : 0 })
            }
        }
    }

    private static func switches(_ choices: [Int]) -> Int { choices.count { $0 > 0 } }
}

/// The first part: halves, quarters … single choices are left out or replaced by 0; then picks become smaller.
extension Exploration {
    private mutating func shorten(_ choices: [Int], kind: String?) -> [Int] {
        var best = choices
        var budget = Budget(executions: 500)
        var hasProgress = true
        while hasProgress {
            hasProgress = false
            for candidate in Self.smaller(than: best) where budget.isLeft {
                let shrunk = execute(.replay(Replay(choices: candidate)))
                budget.executions -= 1
                budget.steps -= shrunk.steps
                // The execution's own choices.
                let choices = Schedule(choices: shrunk.choices).choices
                guard shrunk.failureKind == kind, Self.cost(choices) < Self.cost(best) else { continue }
                best = choices
                hasProgress = true
                break
            }
        }
        return best
    }

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

    /// The cost of a schedule: fewer switches matter more than fewer choices.
    private static func cost(_ choices: [Int]) -> (switches: Int, count: Int, sum: Int) {
        (switches(choices), choices.count, choices.reduce(0, +))
    }
}
