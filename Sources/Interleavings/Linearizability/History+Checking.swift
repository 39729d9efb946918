public import TokenServiceConcurrency

/// Checking a history.
extension History {
    /// Searches for an order of the operations in which every answer is right.
    @inlinable
    package func check(stepLimit: Int = 1_000_000) -> LinearizabilityVerdict {
        let (operations, outcomes, log) = snapshot()
        var numbered = NumberedStates(specification, operations: operations, outcomes: outcomes)
        let ending = log.search(stepLimit: stepLimit) { call, state, result in
            numbered.append(after: call, in: state, to: &result)
        }
        return verdict(ending, numbered, log, stepLimit)
    }

    /// Throws unless there is an order of the operations in which every answer is right.
    ///
    /// Call this when the recorded work has ended; a call that is still open may or may not have taken effect. The same history
    /// always gets the same verdict and the same report.
    ///
    /// The problem is NP-complete, but the cost depends on the number of calls open at once: a thousand operations of four
    /// callers take a few steps each. Objects that remember an order that no answer has shown yet, such as a queue that grows
    /// while its callers overlap, cost more, and so do calls that never return.
    ///
    /// - Parameter stepLimit: How often the search may call the specification. A million steps take less than a second in
    ///   release, ten in debug; a passing history of six callers and thirty operations needs a few hundred.
    /// - Throws: ``NotLinearizable`` with a chart of the history, or another error at the limit.
    @inlinable
    public func requireLinearizable(stepLimit: Int = 1_000_000) throws {
        switch check(stepLimit: stepLimit) {
        case .linearizable: break
        case .notLinearizable(let error): throw error
        case .undecided(let error): throw error
        }
    }

    @usableFromInline
    func snapshot() -> ([Specification.Operation], [Specification.Outcome?], CallLog) {
        let recording = recording.withLock { $0 }
        return (recording.operations, recording.outcomes, recording.log)
    }

    @usableFromInline
    func verdict(
        _ ending: LinearizationEnding, _ numbered: NumberedStates<Specification>, _ log: CallLog, _ stepLimit: Int
    ) -> LinearizabilityVerdict {
        if let surplus = recording.withLock({ $0.surplus }) {
            let (call, first) = (surplus.call, numbered.outcomes[surplus.call].map { Wording.of($0) } ?? "")
            let description = """
                Not linearizable: #\(call + 1), \(Wording.of(numbered.operations[call])) of '\(log.calls[call].caller)', \
                returned twice: first \(first), later \(Wording.of(surplus.outcome)). A call returns once.
                """
            return .notLinearizable(NotLinearizable { description })
        }
        switch ending {
        case .order: return .linearizable
        case .deadEnd(let deadEnd):
            let example = Counterexample(numbered: numbered, log: log, deadEnd: deadEnd)
            return .notLinearizable(NotLinearizable { CounterexampleReport(example.shortest(), of: log).text })
        case .undecided:
            let concurrency = Overlaps(log).slotCount
            return .undecided(
                LinearizabilityUndecided(stepLimit: stepLimit, operations: log.calls.count, concurrency: concurrency))
        }
    }
}

/// The result of checking a history.
@usableFromInline
package enum LinearizabilityVerdict: Sendable {
    /// There is an order in which every answer is right.
    case linearizable
    /// There is no such order; the value shows why.
    case notLinearizable(NotLinearizable)
    /// The search reached the step limit first.
    case undecided(any Error)
}

/// A history that has no order: an object that serves one caller after another could not have given these answers.
public struct NotLinearizable: Error, Described {
    // Written on demand: a program that searches for the shortest of many failing histories reads one report.
    private let report: @Sendable () -> String

    init(report: @escaping @Sendable () -> String) {
        self.report = report
    }

    /// The operations in a timeline, the order that gets furthest, and why none of the others can come next.
    package var text: String { report() }
}

/// A check that reached its step limit: the history may or may not have an order.
///
/// Raise the step limit, record fewer operations that are open at once, or record independent objects in separate histories.
/// Calls that never return cost most: each may take effect at any later moment.
package struct LinearizabilityUndecided: Error, Described {
    /// How many steps were allowed.
    package let stepLimit: Int
    /// How many operations the history holds.
    package let operations: Int
    /// The largest number of operations that were open at once.
    package let concurrency: Int

    /// The numbers, and how to get a verdict.
    package var text: String {
        """
        Undecided: the search for an order of \(operations) operations, up to \(concurrency) of them open at once, was ended \
        after \(stepLimit) steps. Raise stepLimit, record fewer operations that are open at once, or record independent objects \
        in separate histories.
        """
    }
}
