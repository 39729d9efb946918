import AccessTokens
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A shared store without a disk, for tests and benchmarks.
package final class InMemorySharedTokenStore: SharedTokenStore {
    private struct State {
        var bytes: Data?
        var swaps = 0
        /// The tasks that wait for a change.
        var waiting: [SingleResult<Void>] = []

        var record: SharedRecord? { bytes.map { SharedRecord($0, revision: .init("\(swaps)")) } }
    }

    private let state = Lock(State())

    package init() {}

    /// The current record.
    package var contents: SharedRecord? { state.withLock { $0.record } }

    @concurrent package func load() async -> SharedRecord? { contents }

    @concurrent package func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async -> SharedRecord.Swap {
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

    /// Ignores the limit, which the caller watches, since its clock may be a test's.
    @concurrent package func changedRecord(
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
