import TokenServiceConcurrency

/// The operations of several callers on one shared record, and whether a single record explains them.
///
/// No content is written twice, so each is current at most once, and the contents that were seen form a chain, in which each swap is
/// the step from the content that it expected to its own. So each operation has one place, and the history is linearizable if and
/// only if none ended before another began whose place is earlier.
package final class RegisterHistory: Sendable {
    package enum Outcome: Sendable {
        /// The content that a load returned, or that a swap met in place of the one that it expected; `nil`: no record.
        case sees(String?)
        case replaces
        /// A load that threw proves nothing. A swap that threw may have taken effect, or may do so at any later moment.
        case throwsError
    }

    private struct Operation {
        let caller: String
        /// What a swap writes in which content's place; `nil`: a load.
        let swap: (new: String, expected: String?)?
        let begin: Int
        var end = Int.max
        var outcome = Outcome.throwsError

        var text: String {
            let call = swap.map { "\(caller) replaces \($0.expected ?? "no record") by \($0.new)" } ?? "\(caller) loads"
            return switch outcome {
            case .sees(let content): "\(call), and is answered \(content ?? "no record")"
            case .replaces: call
            case .throwsError: "\(call), without an answer"
            }
        }
    }

    private let initial: String?
    private let state = Lock((operations: [Operation](), moment: 0))

    package init(initial: String?) {
        self.initial = initial
    }

    /// Notes that an operation begins, and returns its number.
    package func begin(_ caller: String, swap: (new: String, expected: String?)? = nil) -> Int {
        state.withLock { state in
            state.moment += 1
            state.operations.append(Operation(caller: caller, swap: swap, begin: state.moment))
            return state.operations.count - 1
        }
    }

    package func end(_ number: Int, _ outcome: Outcome) {
        state.withLock { state in
            state.moment += 1
            state.operations[number].end = state.moment
            state.operations[number].outcome = outcome
        }
    }

    /// What a single record couldn't have done; `nil` if it explains everything.
    package func problem() -> String? {
        let operations = state.withLock { $0.operations }
        // The swaps that took effect: those that say so, and of those without an answer, the ones whose content was seen.
        var writers: [String: Operation] = [:], written: [String?] = []
        for operation in operations {
            switch (operation.outcome, operation.swap) {
            case (.sees(let content), _): written.append(content)
            case (.replaces, let swap?):
                writers[swap.new] = operation
                written.append(swap.new)
            case (.throwsError, let swap?): writers[swap.new] = operation
            case (_, nil): break
            }
        }
        var steps: [String?: Operation] = [:]
        while let content = written.popLast() {
            guard let content, let writer = writers.removeValue(forKey: content), let swap = writer.swap else { continue }
            if let other = steps.updateValue(writer, forKey: swap.expected) { return "\(other.text), and \(writer.text)" }
            written.append(swap.expected)
        }
        var places: [String?: Int] = [initial: 0], last = initial
        while let next = steps[last]?.swap?.new, places.updateValue(places.count, forKey: next) == nil { last = next }

        // A swap stands before what is read in its content's time.
        var placed: [(operation: Operation, place: Int)] = []
        for operation in operations {
            switch (operation.outcome, operation.swap) {
            case (.sees(let content), let swap):
                guard let place = places[content] else { return "\(operation.text), which was never the record" }
                if let swap, swap.expected == content { return "\(operation.text), as it expected" }
                placed.append((operation, 2 * place + 1))
            case (.replaces, let swap?) where places[swap.new] == nil:
                return "\(operation.text), but the former was never the record"
            case (_, let swap?): if let place = places[swap.new] { placed.append((operation, 2 * place)) }
            case (_, nil): break
            }
        }
        var ended = placed.sorted { $0.operation.end < $1.operation.end }[...], latest: (operation: Operation, place: Int)?
        for next in placed.sorted(by: { $0.operation.begin < $1.operation.begin }) {
            while let first = ended.first, first.operation.end < next.operation.begin {
                if first.place > latest?.place ?? -1 { latest = first }
                ended.removeFirst()
            }
            if let latest, latest.place > next.place { return "\(latest.operation.text); and later, \(next.operation.text)" }
        }
        return nil
    }
}
