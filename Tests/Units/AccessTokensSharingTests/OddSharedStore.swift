import AccessTokensTesting
import Foundation
import TokenServiceConcurrency

@testable import AccessTokens
@testable import AccessTokensSharing

/// A store in memory behind a connection that fails when the test says so.
final class OddSharedStore: Sendable {
    /// A fault of a swap.
    enum Fault: Sendable {
        /// Nothing is written, and the service gets an error.
        case fails
        /// The swap is done, but the service gets an error.
        case losesAnswer
        /// The service gets an error, and the swap takes effect when the test says so.
        case isLate
    }

    private struct State {
        var isDown = false
        var faults: [Fault?] = []
        var late: [(bytes: Data, revision: SharedRecord.Revision?)] = []
        var gates: [SingleResult<Void>]?
    }

    struct Down: Error {}

    let log = Log<String>()
    private let state = Lock(State())
    private let memory = Lock<InMemorySharedTokenStore?>(nil)

    func over(_ store: InMemorySharedTokenStore) -> any SharedTokenStore {
        memory.withLock { $0 = store }
        return Front(odd: self, store: store)
    }

    /// Whether all reads and swaps fail.
    var isDown: Bool {
        get { state.withLock { $0.isDown } }
        set { state.withLock { $0.isDown = newValue } }
    }

    /// Sets the faults of the next swaps, one after another; `nil`: a swap without a fault.
    func next(_ faults: Fault?...) { state.withLock { $0.faults += faults } }

    /// Lets the late swaps take effect, if they still can.
    func land() async {
        let (late, store) = (
            state.withLock { state in
                defer { state.late = [] }
                return state.late
            }, memory.withLock { $0 }
        )
        for swap in late { _ = await store?.swap(swap.bytes, ifAt: swap.revision) }
    }

    /// Reads wait from now on.
    func hold() { state.withLock { $0.gates = [] } }

    func release() {
        let gates = state.withLock { state in
            defer { state.gates = nil }
            return state.gates ?? []
        }
        for gate in gates { gate.complete(with: .success(())) }
    }

    private func enter(_ name: String) async throws {
        log.append(name)
        let gate = SingleResult<Void>()
        let isHeld = state.withLock { state in
            state.gates?.append(gate)
            return state.gates != nil
        }
        if isHeld, name == "load" { try await gate.value() }
        if isDown { throw Down() }
    }

    private func fault(_ bytes: Data, _ revision: SharedRecord.Revision?) -> Fault? {
        state.withLock { state in
            let fault = state.faults.isEmpty ? nil : state.faults.removeFirst()
            if fault == .isLate { state.late.append((bytes, revision)) }
            return fault
        }
    }

    private struct Front: SharedTokenStore {
        let odd: OddSharedStore
        let store: InMemorySharedTokenStore

        @concurrent func load() async throws -> SharedRecord? {
            try await odd.enter("load")
            return await store.load()
        }

        @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
            try await odd.enter("swap")
            let fault = odd.fault(bytes, revision)
            if fault == .fails || fault == .isLate { throw Down() }
            let swap = await store.swap(bytes, ifAt: revision)
            if fault == .losesAnswer { throw Down() }
            return swap
        }

        @concurrent func changedRecord(from revision: SharedRecord.Revision?, atMost limit: Duration) async throws
            -> SharedRecord?
        {
            try await store.changedRecord(from: revision, atMost: limit)
        }
    }
}
