extension Execution {
    /// How an execution ended.
    struct Outcome: Sendable {
        let error: (any Error)?
        let choices: [Int]
        let steps: Int
        let fingerprint: Fingerprint
        let trace: Trace
        let chooser: Chooser
        /// The kinds of order that the execution could not have.
        let omissions: Omissions
        /// The unfinished tasks that waited for something unknown.
        var doubted: [String]
        /// The functions in which they wait, by their names; empty where no report is made.
        let whereabouts: [String: String]
        /// Whether the scenario checked a requirement and ended before its tasks began.
        let endsHastily: Bool
        /// Whether the execution waited in vain for a resumption from outside.
        let hasWaited: Bool
        /// How many controlled threads wait for what can't come any more, and stay asleep.
        var parkedThreads = 0
        /// Whether there are others that never end, or too many.
        var hasLeftThreads = false
        /// What the tasks are that it left asleep, if they are too many; `nil`: they aren't.
        var excess: ExplorationProblem?

        init(_ state: Engine.State, stepLimit: Int, hasWaited: Bool) {
            let error = state.error(stepLimit: stepLimit)
            let isDeadlock = (error as? ExplorationProblem)?.code == .deadlock
            doubted = error == nil ? [] : state.tasks.doubted
            whereabouts = isDeadlock || !doubted.isEmpty ? state.whereabouts : [:]
            self.error = (error as? ExplorationProblem)?.adding(whereabouts) ?? error
            choices = state.stoppedReplay ?? state.choices.made
            steps = state.steps
            fingerprint = state.choices.fingerprint
            trace = state.recorder?.trace ?? Trace()
            chooser = state.choices.chooser
            omissions = state.choices.omissions.union(state.escape == nil ? [] : .escape)
            endsHastily = state.tasks.haste == .ended
            self.hasWaited = hasWaited
        }

        /// Whether something outside the explorer's control took part.
        var hasEscaped: Bool { (error as? ExplorationProblem)?.code == .escape }

        /// Whether the same choices can be run again: not after an escape, a blocked thread or a stop.
        var isRepeatable: Bool {
            let code = (error as? ExplorationProblem)?.code
            return code != .escape && code != .blockedThread && code != .stopped && !hasLeftThreads
        }

        /// What the tasks of a deadlock wait for.
        var waits: String? { (error as? ExplorationProblem).flatMap { $0.code == .deadlock ? $0.detail : nil } }

        /// The kind of failure: the kind of problem and its place, without the message.
        ///
        /// `nil`: the execution passed.
        var failureKind: String? { error.map(ScheduleFailure.kind) }
    }
}

extension ScheduleFailure {
    /// The kind of problem and its place, or the error's type.
    static func kind(of error: any Error) -> String {
        guard let problem = error as? ExplorationProblem else { return String(reflecting: type(of: error)) }
        return "\(problem.code.rawValue) \(problem.place)"
    }

    var kind: String { Self.kind(of: underlying) }
}

extension Engine.State {
    func name(of wait: Engine.Wait) -> String {
        switch wait {
        case .gate(let gate): gate.title
        case .turn(let turn): "the queue '\(lanes[turn.lane].name)'"
        }
    }

    /// Names the task that keeps a thread waiting; empty: none is known.
    private func holder(of wait: Engine.Wait) -> String {
        guard case .gate(let gate) = wait else { return "" }
        let holder = gate.holder ?? gate.owner.flatMap { task(onOneOf: [$0]) }
        return holder.map { ", which '\(name(of: $0))' holds" } ?? ""
    }

    fileprivate func error(stepLimit: Int) -> (any Error)? {
        // Checked even if a failure came first, because the failure may have prevented the wait for the outside event.
        if let escape {
            let function = escape.callSite?().map { ", in \($0)" } ?? ""
            return ExplorationProblem(.escape, tasks: escape.tasks, detail: escape.detail + function, remedy: session?.remedy)
        }
        if let failure { return failure }
        if tasks.unfinished == 0 { return nil }
        guard !choices.hasReached(stepLimit) else {
            return ExplorationProblem(.livelock, tasks: recorder?.trace.recentTasks ?? [], detail: "\(steps)")
        }
        // The gate was shut when nothing could run.
        let stopped = lanes.ready.filter { !isFrozen($0.process) }
        if let entry = stopped.first(where: { if case .gate(let gate) = $0.wait { gate.isOpen } else { false } }) {
            let detail = "a thread that the explorer does not drive ended a wait of '\(name(of: entry.task))'"
            return ExplorationProblem(.escape, tasks: tasks.waiting, detail: detail, remedy: session?.remedy)
        }
        let waits = stopped.compactMap { entry in
            entry.wait.map { " '\(name(of: entry.task))' waits for \(name(of: $0))\(holder(of: $0))." }
        }
        let detail = (waits + processes.filter { $0.condition == .frozen }.map { " The process '\($0.name)' is frozen." })
            .joined()
        return ExplorationProblem(.deadlock, tasks: tasks.waiting, detail: detail, remedy: session?.remedy)
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
    /// Returns where two executions of the same choices differ; `nil` if they don't.
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
    fileprivate var choice: String {
        candidates.map { $0.isEmpty ? "time" : "'\($0)'" }.joined(separator: ", ")
    }

    /// Returns the most informative difference between two steps.
    fileprivate static func differing(_ one: Self, _ two: Self) -> (String, String) {
        if (one.task, one.place) != (two.task, two.place) {
            return ("\(one.actor) ran", "\(two.actor)\(one.task == two.task ? " in '\(two.place)'" : "")")
        }
        if one.candidates != two.candidates {
            return ("\(one.choice) could run", two.choice)
        }
        for index in 0..<max(one.events.count, two.events.count) {
            let texts = [one, two].map { $0.events.indices.contains(index) ? "'\($0.events[index].text)'" : "nothing" }
            if texts[0] != texts[1] { return ("\(one.actor) logged \(texts[0])", texts[1]) }
        }
        return ("it was \(one.time)", "\(two.time)")
    }
}
