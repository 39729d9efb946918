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

/// A plain value that does what the concurrent object is meant to do, one operation at a time.
///
/// It is its own state and its own specification: the initial state is the value that ``History/init(_:)`` gets.
///
/// ```swift
/// struct Counter: SequentialModel {
///     enum Operation { case increment, read }
///     var value = 0
///     mutating func apply(_ operation: Operation) -> Int {
///         if operation == .increment { value += 1 }
///         return value
///     }
/// }
/// ```
///
/// An operation without a value returns whatever says "done": `nil`, `true`, a case of an enum.
public protocol SequentialModel: SequentialSpecification, Hashable where State == Self, Outcome: Equatable {
    /// The model itself.
    associatedtype State = Self
    /// What callers ask for, with its arguments.
    associatedtype Operation
    /// What a call gave; the checker compares it with the model's answer.
    associatedtype Outcome

    /// Performs an operation and returns what a caller must get.
    ///
    /// - Parameter operation: The operation, which runs alone.
    mutating func apply(_ operation: Operation) -> Outcome
}

extension SequentialModel {
    /// The model itself, as it was given to the history.
    @inlinable
    public var initialState: Self { self }

    /// Applies the operation to a copy of the state, and refuses if the answer differs.
    @inlinable
    public func states(after operation: Operation, returning outcome: Outcome?, in state: Self) -> [Self] {
        var next = state
        let right = next.apply(operation)
        if let outcome, outcome != right { return [] }
        return [next]
    }

    /// The one right answer.
    public func expectation(of operation: Operation, in state: Self) -> String? {
        var next = state
        return Wording.of(next.apply(operation))
    }
}
