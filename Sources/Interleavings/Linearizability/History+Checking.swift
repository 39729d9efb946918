import TokenServiceConcurrency

/// Asking whether a history makes sense.
extension History {
    /// Looks for an order of the operations in which every answer is right.
    ///
    /// Call it when the recorded work has ended; a call that is still open counts as one that may have taken effect or not.
    /// The same history gets the same verdict and the same report, whatever the threads did.
    ///
    /// The problem is NP-complete, but what counts is how many calls are open at once: a thousand operations of four callers
    /// take a few steps each. Dearer are objects that remember orders which no answer has shown yet, such as a queue that
    /// grows long while its callers overlap, and calls that never return.
    ///
    /// - Parameter stepLimit: How often the search may ask the specification. A million steps take less than a second in
    ///   release, ten in debug; a passing history of six callers and thirty operations needs a few hundred.
    /// - Returns: What was found; never ``LinearizabilityVerdict/linearizable`` without an order in hand.
    @inlinable
    public func check(stepLimit: Int = 1_000_000) -> LinearizabilityVerdict {
        let (operations, outcomes, log) = snapshot()
        var numbered = NumberedStates(specification, operations: operations, outcomes: outcomes)
        let ending = log.search(stepLimit: stepLimit) { call, state, result in
            numbered.append(after: call, in: state, to: &result)
        }
        return verdict(ending, numbered, log, stepLimit)
    }

    /// Throws unless there is an order of the operations in which every answer is right.
    ///
    /// - Parameter stepLimit: How often the search may ask the specification; see ``check(stepLimit:)``.
    /// - Throws: ``NotLinearizable`` with the picture of the history, or ``LinearizabilityUndecided`` at the limit.
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

/// What a check of a history found.
public enum LinearizabilityVerdict: Sendable {
    /// There is an order in which every answer is right.
    case linearizable
    /// There is none; the value shows why.
    case notLinearizable(NotLinearizable)
    /// The step limit was reached before either was known.
    case undecided(LinearizabilityUndecided)
}

/// A history that has no order: what its callers got can't come from an object that serves one after another.
public struct NotLinearizable: Error, CustomStringConvertible {
    // Written when it is read: whoever looks for the shortest of many failing histories reads one of them.
    private let report: @Sendable () -> String

    init(report: @escaping @Sendable () -> String) {
        self.report = report
    }

    /// The operations in a timeline, the order that gets furthest, and why none of the others can come next.
    public var description: String { report() }
}

/// A check that gave up: the history may have an order or not.
///
/// Raise the step limit, record fewer operations that are open at once, or give objects that don't influence each other a
/// history each. Calls that never return are the costliest: each may take effect at any later moment.
public struct LinearizabilityUndecided: Error, CustomStringConvertible {
    /// How many steps were allowed.
    public let stepLimit: Int
    /// How many operations the history holds.
    public let operations: Int
    /// The most operations that were open at once.
    public let concurrency: Int

    /// The numbers, and what to do.
    public var description: String {
        """
        Undecided: the search for an order of \(operations) operations, up to \(concurrency) of them open at once, was ended \
        after \(stepLimit) steps. Raise stepLimit, record fewer operations that are open at once, or give objects that don't \
        influence each other a history each.
        """
    }
}
