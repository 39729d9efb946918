/// A history without an order, and how far the search got.
struct Counterexample<Specification: SequentialSpecification>: Sendable {
    let numbered: NumberedStates<Specification>
    let log: CallLog
    let deadEnd: DeadEnd

    /// How many steps the search for a shorter history may take: a few milliseconds.
    private static var stepLimit: Int { 20_000 }

    /// Returns the shortest prefix of the history that has no order either.
    ///
    /// In it, calls that return later are open. The prefix ends with the wrong answer, whereas a search of the whole history
    /// often gets stuck earlier, because of what other calls return later.
    func shortest() -> Counterexample {
        let returns = Overlaps(log).returns
        var best = self
        // An order explains the returns before the dead end, and every extension of a failing prefix fails too.
        var (passes, fails) = (deadEnd.position - 1, returns.count)
        while fails - passes > 1 {
            let middle = (passes + fails) / 2
            if let shorter = beginning(until: log.calls[returns[middle]].end) {
                best = shorter
                fails = middle
            } else {
                passes = middle
            }
        }
        return best
    }

    /// Returns the history up to a moment, if that part has no order.
    private func beginning(until moment: Int) -> Counterexample? {
        let past = log.prefix(through: moment)
        let outcomes = past.calls.indices.map { past.calls[$0].hasReturned ? numbered.outcomes[$0] : nil }
        var states = NumberedStates(
            numbered.specification, operations: Array(numbered.operations.prefix(past.calls.count)), outcomes: outcomes)
        let ending = past.search(stepLimit: Self.stepLimit) { call, state, result in
            states.append(after: call, in: state, to: &result)
        }
        guard case .deadEnd(let deadEnd) = ending else { return nil }
        return Counterexample(numbered: states, log: past, deadEnd: deadEnd)
    }
}
