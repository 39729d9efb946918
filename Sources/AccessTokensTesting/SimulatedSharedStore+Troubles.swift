import AccessTokens
import AccessTokensSharing
import TokenServiceConcurrency

/// Troubles that the test can cause while the store runs; each takes effect with the next operation that reaches the store.
extension SimulatedSharedStore {
    /// How long an operation takes, including a failure; operations under way keep theirs.
    package var latency: Duration {
        get { state.withLock { $0.latency } }
        set { state.withLock { $0.latency = newValue } }
    }

    /// Whether requests arrive; if not, operations fail and change nothing.
    public var isReachable: Bool {
        get { state.withLock { $0.isReachable } }
        set { state.withLock { $0.isReachable = newValue } }
    }

    /// Makes the next operations of a kind fail: they change nothing.
    ///
    /// - Parameters:
    ///   - operation: The kind of operation.
    ///   - count: How many of them.
    package func failNext(_ operation: Operation, _ count: Int = 1) {
        state.withLock { $0.plan(.failure, of: operation, count) }
    }

    /// Makes the next swaps lose their answer: the record is replaced if its revision is the given one, but the service can't
    /// know.
    ///
    /// - Parameter count: How many swaps.
    public func loseNextResponses(_ count: Int = 1) {
        state.withLock { $0.plan(.lostAnswer, of: .swap, count) }
    }

    /// Makes the next swaps meet another revision, as if another service had just written the same record again.
    ///
    /// Without a record there is no conflict; the trouble then waits for the first swap that finds one.
    ///
    /// - Parameter count: How many swaps.
    package func conflictNext(_ count: Int = 1) {
        state.withLock { $0.plan(.conflict, of: .swap, count) }
    }
}

extension SimulatedSharedStore.State {
    /// The trouble of an operation.
    enum Trouble: Sendable {
        case failure
        case lostAnswer
        case conflict
    }

    mutating func plan(_ trouble: Trouble, of operation: SimulatedSharedStore.Operation, _ count: Int) {
        if count > 0 { troubles[operation, default: []].append((trouble, count)) }
    }

    /// Takes the trouble of the operation that takes effect now.
    mutating func nextTrouble(of operation: SimulatedSharedStore.Operation, hasRecord: Bool = true) -> Trouble? {
        guard isReachable else { return .failure }
        var planned = troubles[operation] ?? []
        guard let next = planned.firstIndex(where: { hasRecord || $0.trouble != .conflict }) else { return nil }
        let trouble = planned[next].trouble
        planned[next].remaining -= 1
        if planned[next].remaining == 0 { planned.remove(at: next) }
        troubles[operation] = planned
        return trouble
    }

    /// - Returns: Whether the load fails.
    mutating func noteLoad() -> Bool {
        let fails = nextTrouble(of: .load) != nil
        log.append(fails ? "load fails" : "load")
        return fails
    }

    mutating func note(_ outcome: SharedRecord.Swap?, isLost: Bool) {
        switch outcome {
        case nil: log.append("swap fails")
        case .done(let revision): log.append("swap \(revision.text)\(isLost ? ", answer lost" : "")")
        case .conflict(let record): log.append("swap meets \(record?.revision.text ?? "no record")")
        }
    }
}
