extension Execution {
    /// What an execution ended with.
    struct Outcome: Sendable {
        let error: (any Error)?
        let choices: [Int]
        let steps: Int
        let fingerprint: Fingerprint
        let trace: Trace
        let chooser: Chooser
        /// Whether nothing came from outside, though it was waited for.
        let hasWaited: Bool
        /// Whether controlled threads are left that don't end.
        var hasLeftThreads = false

        init(_ state: Engine.State, stepLimit: Int, hasWaited: Bool) {
            error = state.error(stepLimit: stepLimit)
            choices = state.choices
            steps = state.steps
            fingerprint = state.fingerprint
            trace = state.recorder?.trace ?? Trace()
            chooser = state.chooser
            self.hasWaited = hasWaited
        }

        /// Whether the same choices lead to the same again, without harm: not if something came from outside or is stuck.
        var isRepeatable: Bool {
            let code = (error as? ExplorationProblem)?.code
            return code != .escape && code != .blockedThread && !hasLeftThreads
        }

        /// What makes two failures the same; `nil`: there is none.
        var failureKind: String? {
            guard let error else { return nil }
            guard let problem = error as? ExplorationProblem else { return String(reflecting: type(of: error)) }
            return problem.code == .requirement ? "requirement: \(problem.detail)" : problem.code.description
        }
    }
}

extension Engine.State {
    /// Whether somebody waits though nothing is left to run.
    func isStuck(stepLimit: Int) -> Bool {
        failure == nil && escape == nil && unfinished > 0 && steps < stepLimit
    }

    /// The names of those who have not ended, in the order in which they were spawned.
    private var waiting: [String] { spawned.filter { !$0.hasEnded }.map(\.name) }

    fileprivate func error(stepLimit: Int) -> (any Error)? {
        if let failure { return failure }
        if let escape { return ExplorationProblem(.escape, tasks: waiting, detail: escape) }
        if unfinished == 0 { return nil }
        guard steps < stepLimit else {
            return ExplorationProblem(.livelock, tasks: recorder?.trace.recentTasks ?? [], detail: "\(steps)")
        }
        let locks = ready.compactMap { entry in entry.lock.map { (self.name(of: entry.task), $0.name) } }
        let detail = locks.map { " '\($0.0)' waits for the lock '\($0.1)'." }.joined()
        return ExplorationProblem(.deadlock, tasks: waiting, detail: detail)
    }
}

extension Trace {
    /// Who ran in the last steps, in the order of the last time.
    fileprivate var recentTasks: [String] {
        steps.suffix(100).reversed().reduce(into: [String]()) { names, step in
            if !step.isTime, !names.contains(step.task) { names.append(step.task) }
        }.reversed()
    }
}
