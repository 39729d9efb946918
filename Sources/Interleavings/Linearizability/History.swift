import TokenServiceConcurrency

/// A record of concurrent calls and their results, in the order in which they happened.
///
/// Record every call, then check the answers. They are right if each operation can have taken effect at one
/// moment between its call and its return, so that in the order of these moments every answer is the one that the
/// ``SequentialSpecification`` gives. Such a history is called *linearizable*: its callers can't tell the object from one
/// that serves them one after another.
///
/// ```swift
/// let history = History(Counter())
/// simulation.spawn("a") { await history.record("a", .increment) { await counter.increment() } }
/// simulation.spawn("b") { await history.record("b", .increment) { await counter.increment() } }
/// try await simulation.settle()
/// try history.requireLinearizable()
/// ```
///
/// Tasks and threads may record at the same time. The lock inside is held for a few instructions, never while an operation runs.
/// Record independent objects, such as a cache's keys, in separate histories: checking is faster.
///
/// Source: Herlihy, Wing, "Linearizability: A Correctness Condition for Concurrent Objects", TOPLAS 12(3), 1990.
public final class History<Specification: SequentialSpecification>: Sendable {
    struct Recording: Sendable {
        var log = CallLog()
        var operations: [Specification.Operation] = []
        /// The calls' results; `nil`: unknown.
        var outcomes: [Specification.Outcome?] = []
        /// The first answer to a call that already had one.
        var surplus: (call: Int, outcome: Specification.Outcome)?
    }

    /// The specification of the right answers.
    @usableFromInline package let specification: Specification
    let recording = Lock(Recording())

    /// Creates an empty history.
    ///
    /// - Parameter specification: The right answers, and the state before the first call.
    public init(_ specification: Specification) {
        self.specification = specification
    }

    /// How many calls were recorded, including those that have not returned.
    package var count: Int { recording.withLock { $0.log.calls.count } }

    /// Notes that a call begins, for code that doesn't return its answer, such as a callback API.
    ///
    /// - Parameters:
    ///   - caller: The caller's name in the report.
    ///   - operation: The operation that is called.
    /// - Returns: The open call. Until it is ended, the operation may have taken effect or not.
    public func begin(_ caller: String, _ operation: Specification.Operation) -> Call {
        recording.withLock { recording in
            recording.operations.append(operation)
            recording.outcomes.append(nil)
            return Call(history: self, index: recording.log.begin(caller))
        }
    }

    /// A call that has begun.
    public struct Call: Sendable {
        let history: History
        let index: Int

        /// Notes that the call returned.
        ///
        /// A call returns once: a history with a second answer to a call has no order, whatever the answers are.
        ///
        /// - Parameter outcome: The caller's result.
        public func end(returning outcome: Specification.Outcome) {
            history.recording.withLock { recording in
                if recording.log.end(index) {
                    recording.outcomes[index] = outcome
                } else if recording.surplus == nil {
                    recording.surplus = (index, outcome)
                }
            }
        }
    }
}
