/// Checking an outcome: counting it, running it again, and reporting a failure.
extension Exploration {
    mutating func note(_ outcome: Execution.Outcome, strategy: String, seed: UInt64?) throws {
        try Task.checkCancellation()
        summary.schedules += 1
        summary.steps += outcome.steps
        summary.mostChoices = max(summary.mostChoices, outcome.choices.count)
        let isFirstFailure = outcome.error != nil && summary.firstFailure == nil
        if isFirstFailure || summary.schedules == 1, outcome.isRepeatable, let problem = nondeterminism(after: outcome) {
            throw failure(problem, outcome, strategy: strategy, seed: seed)
        }
        guard let error = outcome.error else { return }
        summary.failures += 1
        // A failure that leaves threads behind ends the exploration: each one would cost threads for good.
        guard isFirstFailure || outcome.hasLeftThreads else { return }
        let shrunk = strategy != "replay" && outcome.isRepeatable ? shrink(outcome) : outcome.choices
        let recorded = outcome.trace.steps.isEmpty ? execute(.replay(Replay(choices: shrunk)), records: true) : outcome
        guard recorded.failureKind == outcome.failureKind || !outcome.isRepeatable else {
            throw failure(difference(after: recorded), recorded, strategy: strategy, seed: seed)
        }
        let failure = failure(recorded.error ?? error, recorded, strategy: strategy, seed: seed)
        summary.firstFailure = summary.firstFailure ?? failure
        if !countsFailures || outcome.hasLeftThreads { throw failure }
    }

    func failure(_ error: any Error, _ outcome: Execution.Outcome, strategy: String, seed: UInt64?) -> ScheduleFailure {
        ScheduleFailure(
            underlying: error, schedule: Schedule(choices: outcome.choices), number: summary.schedules, planned: planned,
            strategy: strategy, seed: seed, trace: outcome.trace, settings: settings)
    }

    /// Runs the same choices again and reports a difference.
    private mutating func nondeterminism(after outcome: Execution.Outcome) -> ExplorationProblem? {
        let again = execute(.replay(Replay(choices: outcome.choices)))
        guard again.fingerprint != outcome.fingerprint || again.failureKind != outcome.failureKind else { return nil }
        // An escape is nondeterminism too, and explains more.
        if let problem = again.error as? ExplorationProblem, problem.code == .escape { return problem }
        return difference(after: outcome, again)
    }

    /// Runs the same choices until two executions differ, and describes where.
    mutating func difference(after outcome: Execution.Outcome, _ again: Execution.Outcome? = nil) -> ExplorationProblem {
        let first = execute(.replay(Replay(choices: outcome.choices)), records: true)
        for _ in 0..<20 {
            let second = execute(.replay(Replay(choices: outcome.choices)), records: true)
            guard let detail = first.difference(from: second) else { continue }
            return ExplorationProblem(.nondeterminism, detail: detail)
        }
        let detail = again.flatMap { outcome.difference(from: $0) } ?? "a schedule ran differently the second time"
        return ExplorationProblem(
            .nondeterminism, detail: detail + ", but all later runs were alike: probably only the first run differs")
    }
}

/// Shrinking: drops and zeroes choices as long as the same failure remains.
extension Exploration {
    /// The most executions and steps that shrinking may take.
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
                // The choices that the execution made.
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

    /// Fewer switches come before fewer choices.
    private static func cost(_ choices: [Int]) -> (switches: Int, count: Int, sum: Int) {
        (choices.count { $0 > 0 }, choices.count, choices.reduce(0, +))
    }
}
