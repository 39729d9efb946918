package import AccessTokens
import TokenServiceConcurrency

/// A store whose operations wait for the test, one by one, when it says so.
package final class ScriptedStore: TokenStore {
    package struct Failure: Error {}

    private struct State {
        var contents: StoredToken?
        var failing: Set<String> = []
        var isHeld = false
        var held: [SingleResult<Void>] = []
    }

    private let state: Lock<State>
    package let log = Log<String>()

    package init(_ contents: StoredToken? = nil) {
        state = Lock(State(contents: contents))
    }

    package var contents: AccessToken? { state.withLock { $0.contents?.token } }

    /// The named operations (`load`, `save`, `remove`) throw from now on.
    package func fail(_ operations: String...) { state.withLock { $0.failing = Set(operations) } }

    /// Operations that begin from now on do not end before ``release()``.
    package func hold() { state.withLock { $0.isHeld = true } }

    package func release() {
        let held = state.withLock { state in
            defer { (state.isHeld, state.held) = (false, []) }
            return state.held
        }
        for gate in held { gate.complete(with: .success(())) }
    }

    @concurrent package func load() async throws -> StoredToken? {
        try await begin("load")
        return state.withLock { $0.contents }
    }

    @concurrent package func save(_ token: StoredToken) async throws {
        try await begin("save", token.token.value)
        state.withLock { $0.contents = token }
    }

    @concurrent package func remove() async throws {
        try await begin("remove")
        state.withLock { $0.contents = nil }
    }

    private func begin(_ operation: String, _ detail: String = "") async throws {
        log.append(detail.isEmpty ? operation : "\(operation) \(detail)")
        let gate = SingleResult<Void>()
        let isHeld = state.withLock { state in
            if state.isHeld { state.held.append(gate) }
            return state.isHeld
        }
        if isHeld { try await gate.value() }
        if state.withLock({ $0.failing.contains(operation) }) { throw Failure() }
    }
}
