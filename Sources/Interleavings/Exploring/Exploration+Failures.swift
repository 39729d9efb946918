import TokenServiceConcurrency

/// Checking an outcome: counting it, running it again, and reporting a failure.
extension Exploration {
    /// - Parameter shrinks: Whether to report the failure with the shortest schedule, rather than with this one.
    mutating func note(_ outcome: Execution.Outcome, shrinks: Bool = true) throws {
        try Task.checkCancellation()
        summary.schedules += 1
        // If no timer waits while work can run, both models are the same.
        distinct.insert(outcome.choices, time: outcome.omissions.contains(.earlyTimer) ? .whenIdle : .anytime)
        summary.distinctSchedules = distinct.value
        summary.steps += outcome.steps
        summary.mostChoices = max(summary.mostChoices, outcome.choices.count)
        summary.timeModels.insert(settings.time)
        summary.omissions.formUnion(outcome.omissions)
        if outcome.endsHastily { summary.hastySchedules += 1 }
        let isFirstFailure = outcome.error != nil && summary.firstFailure == nil
        if isFirstFailure || summary.schedules == 1, outcome.isRepeatable, let problem = nondeterminism(after: outcome) {
            throw failure(problem, outcome)
        }
        if let excess = outcome.excess, outcome.error == nil || summary.firstFailure != nil {
            // Tasks have names only where a report is made.
            throw execute(.replay(Replay(choices: outcome.choices)), records: true).excess ?? excess
        }
        guard let error = outcome.error else { return }
        summary.failures += 1
        // A failure that leaves threads behind ends the exploration: each one would cost threads for good.
        guard isFirstFailure || outcome.hasLeftThreads else { return }
        let shrunk =
            shrinks && outcome.isRepeatable
            ? shrink(outcome) : Shrunk(choices: outcome.choices, minimality: .unknown)
        var recorded = outcome.trace.steps.isEmpty ? record(shrunk.choices, of: outcome) : outcome
        guard recorded.failureKind == outcome.failureKind || recorded.hasEscaped || !outcome.isRepeatable else {
            throw failure(difference(after: recorded, "a schedule ended differently the second time"), recorded)
        }
        recorded.doubted = tasks(neededBy: recorded)
        var failure = failure(shrunk.clarified(recorded.error ?? error), recorded)
        failure.minimality = shrunk.minimality
        if isFirstFailure { failure.guess = guess(in: recorded) }
        if isFirstFailure { (failure.nearestPass, failure.crossing) = comparison(of: recorded) }
        summary.firstFailure = summary.firstFailure ?? failure
        if !countsFailures || outcome.hasLeftThreads { throw failure }
    }

    /// The doubted tasks without which the failure wasn't found again: what another one waits for isn't its cause.
    private mutating func tasks(neededBy outcome: Execution.Outcome) -> [String] {
        let code = (outcome.error as? ExplorationProblem)?.code
        guard outcome.isRepeatable, code == nil || code == .requirement else { return outcome.doubted }
        defer { settings.omitted = [] }
        return outcome.doubted.prefix(20).filter { name in
            guard name != settings.rootName else { return true }
            settings.omitted.insert(name)
            let walks = (0..<20).map { Chooser.random(SplitMix64(seed: $0)) }
            let choosers = [.replay(Replay(choices: outcome.choices)), .usual] + walks
            let isNeeded = !choosers.contains { execute($0).failureKind == outcome.failureKind }
            if isNeeded { settings.omitted.remove(name) }
            return isNeeded
        }
    }

    func failure(_ error: any Error, _ outcome: Execution.Outcome) -> ScheduleFailure {
        let error = (error as? ExplorationProblem)?.advising(on: settings) ?? error
        return ScheduleFailure(
            underlying: error, choices: Schedule(choices: outcome.choices).choices, number: summary.schedules, planned: planned,
            strategy: present.strategy, seed: present.seed, trace: outcome.trace, settings: settings,
            doubted: outcome.doubted.map { $0.at(outcome.whereabouts) }, parkedThreads: outcome.parkedThreads)
    }

    /// Runs a failing schedule for its trace.
    ///
    /// An escape seldom happens twice in the same way: if it doesn't recur, its report has no diagram, rather than one of a
    /// failure that it may have caused.
    private mutating func record(_ choices: [Int], of outcome: Execution.Outcome) -> Execution.Outcome {
        for _ in 0..<(outcome.hasEscaped ? 10 : 1) {
            // A shrunk schedule hasn't waited for outside events yet.
            let recorded = execute(.replay(Replay(choices: choices)), records: true, isReported: choices != outcome.choices)
            if recorded.hasEscaped || !outcome.hasEscaped { return recorded }
        }
        return outcome
    }

    /// Runs the same choices again and reports a difference.
    private mutating func nondeterminism(after outcome: Execution.Outcome) -> (any Error)? {
        let again = execute(.replay(Replay(choices: outcome.choices)))
        let isSame = again.fingerprint == outcome.fingerprint && again.failureKind == outcome.failureKind
        guard !isSame || outcome.waits != again.waits else { return nil }
        // A thread that stays asleep may hold what later runs need, such as a lock in a static variable.
        if outcome.parkedThreads > 0, let error = outcome.error { return error }
        // An escape also causes nondeterminism, and explains it better.
        if again.hasEscaped { return again.error }
        let detail = outcome.difference(from: again) ?? "a schedule ran differently the second time"
        return difference(after: outcome, detail + ", but all later runs were alike: probably only the first run differs")
    }

    /// Runs the same choices until two executions differ, and describes where.
    ///
    /// - Parameter detail: What is known about a difference that doesn't recur.
    mutating func difference(after outcome: Execution.Outcome, _ detail: String) -> ExplorationProblem {
        let first = execute(.replay(Replay(choices: outcome.choices)), records: true)
        var (detail, omissions) = (detail, outcome.omissions)
        for _ in 0..<20 {
            let second = execute(.replay(Replay(choices: outcome.choices)), records: true)
            if second.hasEscaped, let escape = second.error as? ExplorationProblem { return escape }
            guard let difference = first.difference(from: second) else { continue }
            (detail, omissions) = (difference, first.omissions.union(second.omissions))
            break
        }
        let cause = "; a step slept while others continued, and how long it slept depends on the machine's load"
        return ExplorationProblem(.nondeterminism, detail: detail + (omissions.contains(.sleepingStep) ? cause : ""))
    }
}
