import Interleavings
import TokenServiceConcurrency

/// Random calls of a few callers, kept in addition to the checker's own record.
///
/// Each call takes effect at a random moment on a real object; now and then one returns a wrong answer, or never.
struct RandomCalls<Specification: SequentialSpecification> {
    struct Call {
        let operation: Specification.Operation
        let beginning: Int
        var end = Int.max
        var outcome: Specification.Outcome?
    }

    let specification: Specification
    private(set) var calls: [Call] = []

    init<Object: SequentialModel>(
        in history: History<Specification>, of object: Object, callers: Int, operations: Int, dice: inout Dice,
        operation: (inout Dice) -> Specification.Operation, wrongAnswer: (inout Dice) -> Specification.Outcome
    ) where Object.Operation == Specification.Operation, Object.Outcome == Specification.Outcome {
        specification = history.specification
        var object = object
        let wrongOneIn = [4, 20, 1000][dice.roll(3)]
        var open: [(call: Int, recorded: History<Specification>.Call, answer: Specification.Outcome?)] = []
        for moment in 0..<(operations * 6) {
            if open.count < callers, calls.count < operations, dice.roll(2) == 0 {
                let call = Call(operation: operation(&dice), beginning: moment)
                open.append((calls.count, history.begin("caller", call.operation), nil))
                calls.append(call)
            } else if let chosen = open.indices.randomElement(using: &dice) {
                if let answer = open[chosen].answer {
                    if dice.roll(8) == 0 { continue }
                    calls[open[chosen].call].end = moment
                    calls[open[chosen].call].outcome = answer
                    open.remove(at: chosen).recorded.end(returning: answer)
                } else {
                    let right = object.apply(calls[open[chosen].call].operation)
                    open[chosen].answer = dice.roll(wrongOneIn) == 0 ? wrongAnswer(&dice) : right
                }
            }
        }
    }

    /// Whether any permutation of the returned calls, possibly together with other calls, is an order that explains them.
    ///
    /// Deliberately plain: it remembers nothing and shares no code with the checker.
    func hasOrder() -> Bool {
        hasOrder(after: [], in: specification.initialState)
    }

    /// The call whose return is the first up to which there is no order; `nil` if it is the last event.
    var firstFailure: Int? {
        let returned = calls.indices.filter { calls[$0].outcome != nil }.sorted { calls[$0].end < calls[$1].end }
        let first = returned.first { !until(calls[$0].end).hasOrder() }
        return first.flatMap { first in
            calls.contains { $0.beginning > calls[first].end || $0.outcome != nil && $0.end > calls[first].end } ? first : nil
        }
    }

    /// Returns the calls up to a moment: later ones are left out, and open ones haven't returned.
    private func until(_ moment: Int) -> RandomCalls {
        var past = self
        past.calls = calls.filter { $0.beginning < moment }.map { call in
            call.end <= moment ? call : Call(operation: call.operation, beginning: call.beginning)
        }
        return past
    }

    private func hasOrder(after taken: Set<Int>, in state: Specification.State) -> Bool {
        let missing = calls.indices.filter { !taken.contains($0) }
        if missing.allSatisfy({ calls[$0].outcome == nil }) { return true }
        return missing.contains { next in
            // No missing call may have returned before this call was made.
            missing.allSatisfy { calls[$0].end > calls[next].beginning }
                && specification.states(after: calls[next].operation, returning: calls[next].outcome, in: state)
                    .contains { hasOrder(after: taken.union([next]), in: $0) }
        }
    }
}
