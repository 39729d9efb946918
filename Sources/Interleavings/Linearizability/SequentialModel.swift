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
