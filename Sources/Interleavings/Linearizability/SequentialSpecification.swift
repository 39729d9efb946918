/// What an object answers when its operations run one at a time: the measure for those that run concurrently.
///
/// For an object whose answer follows from its state, write a ``SequentialModel``: it is shorter. Write this when several
/// answers or several next states are right: a server that picks the token's name, a cache that may forget, an error that
/// is always allowed.
///
/// A specification is pure: the same question gets the same answer, from any thread. It is asked often, outside any lock.
public protocol SequentialSpecification: Sendable {
    /// Everything that later answers depend on.
    associatedtype State: Hashable & Sendable
    /// What callers ask for, with its arguments.
    associatedtype Operation: Sendable
    /// What a call gave: its value, its error, or that it is done.
    associatedtype Outcome: Sendable

    /// The state before the first operation.
    var initialState: State { get }

    /// Returns the states that an operation may lead to, given what it returned.
    ///
    /// - Parameters:
    ///   - operation: The operation that takes effect now, alone.
    ///   - outcome: What it returned; `nil` if that is not known. It then may lead to every state that any answer leads to.
    ///   - state: The state in which it takes effect.
    /// - Returns: The possible states afterwards; none if this operation can't return this outcome in this state.
    func states(after operation: Operation, returning outcome: Outcome?, in state: State) -> [State]

    /// Says what an operation would have returned in a state, for the report.
    ///
    /// - Parameters:
    ///   - operation: An operation that can't take effect in the state, given what it returned.
    ///   - state: The state.
    /// - Returns: The right answer or answers in words; `nil`, the default, if there is nothing to say.
    func expectation(of operation: Operation, in state: State) -> String?
}

extension SequentialSpecification {
    /// Says nothing.
    public func expectation(of operation: Operation, in state: State) -> String? { nil }
}
