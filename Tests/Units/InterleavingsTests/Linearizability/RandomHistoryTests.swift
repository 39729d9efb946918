import Interleavings
import TestBudgets
import Testing
import TokenServiceConcurrency

/// The checker against the definition: both must agree on every history, right or wrong.
@Suite struct `The linearizability checker agrees with trying all permutations` {
    // A new seed in addition to a fixed one; a failure names it.
    static let histories = Int.everyday(300, thorough: 2_500)
    static let seeds: [UInt64] = [1, .random(in: 0 ... .max)]

    @Test(arguments: seeds)
    func `on counters`(seed: UInt64) {
        compare(Counter(), seed: seed, operation: Counter.random) { $0.roll(4) }
    }

    @Test(arguments: seeds)
    func `on registers`(seed: UInt64) {
        compare(Register(), seed: seed, operation: Register.random) { $0.roll(3) }
    }

    @Test(arguments: seeds)
    func `on registers with more than 64 open calls`(seed: UInt64) {
        compare(Register(), seed: seed, histories: Self.histories / 5, crowd: .read, operation: Register.random) { $0.roll(3) }
    }

    @Test(arguments: seeds)
    func `on queues`(seed: UInt64) {
        compare(Queue(), seed: seed, operation: Queue.random) { $0.roll(3) }
    }

    @Test(arguments: seeds)
    func `on stacks`(seed: UInt64) {
        compare(Stack(), seed: seed, operation: Stack.random) { $0.roll(3) }
    }

    @Test(arguments: seeds)
    func `on bags, where several answers are right`(seed: UInt64) {
        compare(Bag(), object: Queue(), seed: seed, operation: Queue.random) { $0.roll(4) == 0 ? nil : $0.roll(3) }
    }

    private func compare<Model: SequentialModel>(
        _ model: Model, seed: UInt64, histories: Int = Self.histories, crowd: Model.Operation? = nil,
        operation: (inout Dice) -> Model.Operation, wrongAnswer: (inout Dice) -> Model.Outcome
    ) {
        compare(
            model, object: model, seed: seed, histories: histories, crowd: crowd, operation: operation,
            wrongAnswer: wrongAnswer)
    }

    private func compare<Specification: SequentialSpecification, Object: SequentialModel>(
        _ specification: Specification, object: Object, seed: UInt64, histories: Int = Self.histories,
        crowd: Specification.Operation? = nil, operation: (inout Dice) -> Specification.Operation,
        wrongAnswer: (inout Dice) -> Specification.Outcome
    ) where Object.Operation == Specification.Operation, Object.Outcome == Specification.Outcome {
        var dice = Dice(seed: seed)
        var linearizable = 0
        for number in 0..<histories {
            let history = History(specification)
            // Calls that change nothing and never return: they hold slots, and must not matter.
            if let crowd { for _ in 0..<70 { _ = history.begin("crowd", crowd) } }
            let calls = RandomCalls(
                in: history, of: object, callers: 1 + dice.roll(4), operations: 1 + dice.roll(7), dice: &dice,
                operation: operation, wrongAnswer: wrongAnswer)
            let verdict = history.check()
            let context: Comment = "seed \(seed), history \(number): \(calls.calls)"
            #expect(verdict.isLinearizable == calls.hasOrder(), context)
            linearizable += verdict.isLinearizable ? 1 : 0
            guard !verdict.isLinearizable else { continue }
            #expect(verdict.lastShown == calls.firstFailure.map { $0 + (crowd == nil ? 1 : 71) }, context)
        }
        // The comparison is only meaningful if both kinds are frequent.
        #expect(linearizable > histories / 10 && linearizable < histories * 9 / 10, "seed \(seed)")
    }
}

extension LinearizabilityVerdict {
    /// The number of the call whose return is the last in the report; `nil` if it shows the whole history.
    fileprivate var lastShown: Int? {
        guard let words = report?.split(separator: "Shown up to the return of #"), words.count == 2 else { return nil }
        return Int(words[1].prefix { $0.isNumber })
    }
}
