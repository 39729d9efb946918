import AccessTokens
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A shared store that lasts as long as the program: for tests, and for several services of one program that share a grant.
public final class InMemorySharedTokenStore: SharedTokenStore {
    private struct State {
        var bytes: Data?
        var swaps = 0
        /// The tasks that wait for a change.
        var waiting: [SingleResult<Void>] = []

        var record: SharedRecord? { bytes.map { SharedRecord($0, revision: .init("\(swaps)")) } }
    }

    private let state = Lock(State())

    /// Creates a store without a record.
    public init() {}

    /// The current record.
    public var contents: SharedRecord? { state.withLock { $0.record } }

    /// Returns the current record.
    @concurrent public func load() async -> SharedRecord? { contents }

    /// Replaces the record if its revision is still the given one, in one step.
    ///
    /// - Parameters:
    ///   - bytes: The new record.
    ///   - revision: The revision of the record that it replaces; `nil` if there is none.
    @concurrent public func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async -> SharedRecord.Swap {
        let (outcome, woken) = state.withLock { state -> (SharedRecord.Swap, [SingleResult<Void>]) in
            guard state.record?.revision == revision else { return (.conflict(state.record), []) }
            state.bytes = bytes
            state.swaps += 1
            defer { state.waiting = [] }
            return (.done(.init("\(state.swaps)")), state.waiting)
        }
        for waiter in woken { waiter.complete(with: .success(())) }
        return outcome
    }

    /// Returns when the record has changed, or the task is cancelled; the caller watches the limit, since its clock may be a
    /// test's.
    ///
    /// - Parameters:
    ///   - revision: The revision of the record that the caller knows; `nil` if it knows that there is none.
    ///   - limit: Ignored.
    /// - Returns: `nil`.
    @concurrent public func changedRecord(
        from revision: SharedRecord.Revision?, atMost limit: Duration
    ) async throws -> SharedRecord? {
        let change = SingleResult<Void>()
        let hasChanged = state.withLock { state in
            if state.record?.revision == revision { state.waiting.append(change) }
            return state.record?.revision != revision
        }
        if hasChanged { return nil }
        try await withTaskCancellationHandler {
            try await change.value()
        } onCancel: {
            state.withLock { $0.waiting.removeAll { $0 === change } }
            change.complete(with: .failure(CancellationError()))
        }
        return nil
    }
}
