/// The states that a search has met, by number, and the specification's answers in terms of these numbers.
///
/// The search itself handles numbers only. This part of it is compiled into the caller's module (hence the attributes),
/// where the compiler sees the specification: ten times as fast as here.
@usableFromInline
struct NumberedStates<Specification: SequentialSpecification>: Sendable {
    @usableFromInline let specification: Specification
    @usableFromInline let operations: [Specification.Operation]
    /// The calls' results; `nil`: unknown.
    @usableFromInline let outcomes: [Specification.Outcome?]
    /// All states met; the initial one is number 0.
    @usableFromInline var states: [Specification.State]
    @usableFromInline var numbers: [Specification.State: Int]

    @inlinable
    init(
        _ specification: Specification, operations: [Specification.Operation], outcomes: [Specification.Outcome?]
    ) {
        self.specification = specification
        self.operations = operations
        self.outcomes = outcomes
        states = [specification.initialState]
        numbers = [:]
        numbers.reserveCapacity(operations.count + 1)
        numbers[states[0]] = 0
    }

    /// Appends the numbers of the states that a call may lead to, given what it returned.
    @inlinable
    mutating func append(after call: Int, in state: Int, to result: inout [Int]) {
        let next = specification.states(after: operations[call], returning: outcomes[call], in: states[state])
        for state in next {
            if let number = numbers[state] {
                result.append(number)
            } else {
                numbers[state] = states.count
                result.append(states.count)
                states.append(state)
            }
        }
    }
}
