/// The answers that an object may give when its operations run one at a time; concurrent calls are checked against them.
///
/// If one answer follows from the object's state, write a ``SequentialModel``, which is shorter. Conform to this protocol when
/// several answers or several next states are right: a server that picks the token's name, a cache that may forget, an error
/// that is always allowed.
///
/// A specification is pure: the same arguments give the same result, on any thread. It is called often, outside any lock.
public protocol SequentialSpecification: Sendable {
    /// The part of the object on which later answers depend.
    associatedtype State: Hashable & Sendable
    /// A caller's request, with its arguments.
    associatedtype Operation: Sendable
    /// The result of a call: its value, its error, or that it is done.
    associatedtype Outcome: Sendable

    /// The state before the first operation.
    var initialState: State { get }

    /// Returns the states that an operation may lead to, given what it returned.
    ///
    /// - Parameters:
    ///   - operation: The operation that takes effect now, alone.
    ///   - outcome: Its result; `nil` if unknown: then it may lead to any state that some answer leads to.
    ///   - state: The state in which it takes effect.
    /// - Returns: The possible states afterwards; none if this operation can't return this outcome in this state.
    func states(after operation: Operation, returning outcome: Outcome?, in state: State) -> [State]

    /// Returns the right answer of an operation in a state, for the report.
    ///
    /// - Parameters:
    ///   - operation: An operation that can't take effect in the state, given what it returned.
    ///   - state: The state.
    /// - Returns: The right answer or answers, in words; `nil`, the default, for no such text.
    func expectation(of operation: Operation, in state: State) -> String?
}

extension SequentialSpecification {
    /// Returns `nil`: the report then has no such text.
    public func expectation(of operation: Operation, in state: State) -> String? { nil }
}

/// A plain value that does what the concurrent object should do, one operation at a time.
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
/// An operation without a value returns one that means "done": `nil`, `true`, a case of an enum.
public protocol SequentialModel: SequentialSpecification, Hashable where State == Self, Outcome: Equatable {
    /// A caller's request, with its arguments.
    associatedtype Operation
    /// The result of a call; the checker compares it with the model's.
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

    /// Applies the operation to a copy of the state; returns no state if the answer differs.
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
