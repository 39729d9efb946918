extension Execution {
    /// How an execution ended.
    struct Outcome: Sendable {
        let error: (any Error)?
        let choices: [Int]
        let steps: Int
        let fingerprint: Fingerprint
        let trace: Trace
        let chooser: Chooser
        /// Whether the execution waited in vain for a resumption from outside.
        let hasWaited: Bool
        /// Whether controlled threads are left that do not end.
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

        /// Whether the same choices can be run again: not after an escape or with a blocked thread.
        var isRepeatable: Bool {
            let code = (error as? ExplorationProblem)?.code
            return code != .escape && code != .blockedThread && !hasLeftThreads
        }

        /// Two failures of one kind count as the same; `nil`: the execution passed.
        var failureKind: String? {
            guard let error else { return nil }
            guard let problem = error as? ExplorationProblem else { return String(reflecting: type(of: error)) }
            return problem.code == .requirement ? "requirement: \(problem.detail)" : problem.code.description
        }
    }
}

extension Engine.State {
    /// Whether tasks still wait though nothing is left to run.
    func isStuck(stepLimit: Int) -> Bool {
        failure == nil && escape == nil && unfinished > 0 && steps < stepLimit
    }

    /// The names of the tasks that have not ended, in the order of spawning.
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
    /// The tasks of the last steps, in the order of their last step.
    fileprivate var recentTasks: [String] {
        steps.suffix(100).reversed().reduce(into: [String]()) { names, step in
            if !step.isTime, !names.contains(step.task) { names.append(step.task) }
        }.reversed()
    }
}

extension Execution.Outcome {
    /// Describes where two executions of the same choices differ; `nil` if they do not.
    func difference(from other: Self) -> String? {
        if let detail = trace.difference(from: other.trace) { return detail }
        if failureKind != other.failureKind { return "the first time it \(ending), the second time it \(other.ending)" }
        guard fingerprint != other.fingerprint else { return nil }
        if choices.count != other.choices.count {
            return "it had \(choices.count) choices the first time and \(other.choices.count) the second"
        }
        if steps != other.steps { return "it took \(steps) steps the first time and \(other.steps) the second" }
        return "other tasks could run at some step, though both had as many steps and choices"
    }

    private var ending: String {
        error.map { "failed: \($0)" } ?? "passed"
    }
}

extension Trace {
    fileprivate func difference(from other: Trace) -> String? {
        for (step, otherStep) in zip(steps, other.steps) where step != otherStep {
            let (one, two) = Step.differing(step, otherStep)
            return "at step \(step.number) \(one), the first time, and \(two), the second"
        }
        guard steps.count != other.steps.count else { return nil }
        let next = steps.count > other.steps.count ? steps[other.steps.count] : other.steps[steps.count]
        return "one execution ended after \(next.number - 1) steps, the other continued with \(next.actor)"
    }
}

extension Trace.Step {
    fileprivate var actor: String { isTime ? "the clock" : "'\(task)'" }

    /// The most telling difference between two steps.
    fileprivate static func differing(_ one: Self, _ two: Self) -> (String, String) {
        if (one.task, one.place) != (two.task, two.place) {
            return ("\(one.actor) ran", "\(two.actor)\(one.task == two.task ? " in '\(two.place)'" : "")")
        }
        if one.candidates != two.candidates {
            return ("\(one.candidates) could run", "\(two.candidates)")
        }
        for index in 0..<max(one.events.count, two.events.count) {
            let texts = [one, two].map { $0.events.indices.contains(index) ? "'\($0.events[index].text)'" : "nothing" }
            if texts[0] != texts[1] { return ("\(one.actor) logged \(texts[0])", texts[1]) }
        }
        return ("it was \(one.time)", "\(two.time)")
    }
}
