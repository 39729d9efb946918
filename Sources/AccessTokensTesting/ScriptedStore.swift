public import AccessTokens
import TokenServiceConcurrency

/// A token store in memory that fails, and waits, when the test says so.
///
/// ```swift
/// let store = ScriptedStore()
/// store.hold()
/// let caller = stage.start { try await service.retrieveToken() }
/// #expect(store.log == ["load"] && !caller.isDone)  // the store is asked before the loader
/// store.release()
/// stage.run()
/// ```
///
/// All methods may be called concurrently, from any thread.
public final class ScriptedStore: TokenStore {
    /// The operations of a store.
    public enum Operation: Sendable {
        /// A service reads the token, usually at its first miss.
        case load
        /// A service writes a new token in place of the old one.
        case save
        /// A service removes the token at a sign-out.
        case remove
    }

    /// The error that a failing operation throws.
    package struct Failure: Error, Hashable, Described {
        package var text: String { "the scripted store failed" }
    }

    private struct State {
        var contents: StoredToken?
        var log: [String] = []
        var failing: Set<Operation> = []
        var isHeld = false
        var held: [SingleResult<Void>] = []
    }

    private let state: Lock<State>

    /// Creates a store.
    ///
    /// - Parameter contents: The initial contents; `nil` for none.
    public init(_ contents: StoredToken? = nil) {
        state = Lock(State(contents: contents))
    }

    /// The token in the store; `nil` if there is none.
    public var contents: AccessToken? { state.withLock { $0.contents?.token } }

    /// The operations begun so far, in order: `load`, `remove`, or `save` with the token's text, such as `save first`.
    public var log: [String] { state.withLock { $0.log } }

    /// Makes the named operations throw an error from now on, and all others succeed.
    ///
    /// An operation fails when it ends, so it may have begun before this call and be held.
    public func fail(_ operations: Operation...) { state.withLock { $0.failing = Set(operations) } }

    /// Makes operations that begin from now on wait for ``release()``.
    public func hold() { state.withLock { $0.isHeld = true } }

    /// Lets the held operations, and all later ones, continue.
    public func release() {
        let held = state.withLock { state in
            defer { (state.isHeld, state.held) = (false, []) }
            return state.held
        }
        for gate in held { gate.complete(with: .success(())) }
    }

    /// Returns the contents of the store.
    ///
    /// - Throws: An error if the last ``fail(_:)`` named this operation.
    @concurrent public func load() async throws -> StoredToken? {
        try await begin(.load, "load")
        return state.withLock { $0.contents }
    }

    /// Saves a token in place of the old one.
    ///
    /// - Throws: An error if the last ``fail(_:)`` named this operation; the old token stays.
    @concurrent public func save(_ token: StoredToken) async throws {
        try await begin(.save, "save \(token.token.value)")
        state.withLock { $0.contents = token }
    }

    /// Removes the token.
    ///
    /// - Throws: An error if the last ``fail(_:)`` named this operation; the token stays.
    @concurrent public func remove() async throws {
        try await begin(.remove, "remove")
        state.withLock { $0.contents = nil }
    }

    private func begin(_ operation: Operation, _ entry: String) async throws {
        let gate = SingleResult<Void>()
        let isHeld = state.withLock { state in
            state.log.append(entry)
            if state.isHeld { state.held.append(gate) }
            return state.isHeld
        }
        if isHeld { try await gate.value() }
        if state.withLock({ $0.failing.contains(operation) }) { throw Failure() }
    }
}
