extension Execution.Outcome {
    /// Says where two executions of the same choices part; `nil` if they don't.
    func difference(from other: Self) -> String? {
        if let detail = trace.difference(from: other.trace) { return detail }
        if failureKind != other.failureKind { return "the first time it \(ending), the second time it \(other.ending)" }
        guard fingerprint != other.fingerprint else { return nil }
        if choices.count != other.choices.count {
            return "it had \(choices.count) choices the first time and \(other.choices.count) the second"
        }
        if steps != other.steps { return "it took \(steps) steps the first time and \(other.steps) the second" }
        return "others could run at some step, though there were as many steps and choices"
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
        return "one execution was over after \(next.number - 1) steps, the other went on with \(next.actor)"
    }
}

extension Trace.Step {
    fileprivate var actor: String { isTime ? "the clock" : "'\(task)'" }

    /// What differs between two steps, from the plainest to the least.
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
