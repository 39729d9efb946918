/// What an exploration makes of an outcome.
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
        // Threads that don't end are few: no counting goes on then.
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

    /// Runs the same choices again: the same must happen.
    private mutating func nondeterminism(after outcome: Execution.Outcome) -> ExplorationProblem? {
        let again = execute(.replay(Replay(choices: outcome.choices)))
        guard again.fingerprint != outcome.fingerprint || again.failureKind != outcome.failureKind else { return nil }
        // An escape is nondeterminism, and tells more.
        if let problem = again.error as? ExplorationProblem, problem.code == .escape { return problem }
        return difference(after: outcome, again)
    }

    /// Says where executions of the same choices part, for which they are run until it shows.
    mutating func difference(after outcome: Execution.Outcome, _ again: Execution.Outcome? = nil) -> ExplorationProblem {
        let first = execute(.replay(Replay(choices: outcome.choices)), records: true)
        for _ in 0..<20 {
            let second = execute(.replay(Replay(choices: outcome.choices)), records: true)
            guard let detail = first.difference(from: second) else { continue }
            return ExplorationProblem(.nondeterminism, detail: detail)
        }
        let detail = again.flatMap { outcome.difference(from: $0) } ?? "a schedule was not the same when it ran again"
        return ExplorationProblem(
            .nondeterminism, detail: detail + ", but the runs after that were alike, so that only the first runs may differ")
    }
}
