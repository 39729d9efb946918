import Interleavings
import Testing
import TokenServiceConcurrency

@Suite struct `A linearizability check's limit` {
    /// A queue filled by overlapping callers, then emptied in an order that may be right.
    private func crowd(_ callers: Int, takes: [Int?]) -> History<Queue> {
        let history = History(Queue())
        let calls = (0..<callers).map { history.begin("caller \($0)", .add($0)) }
        for call in calls { call.end(returning: nil) }
        for item in takes { history.record("reader", .take) { item } }
        return history
    }

    @Test func `makes the verdict undecided, which is an error`() throws {
        let history = crowd(9, takes: [8, 7, 6, 5, 4, 3, 2, 1, 0, 99])
        guard case .undecided(let error as LinearizabilityUndecided) = history.check(stepLimit: 1000) else {
            Issue.record("decided")
            return
        }
        #expect(error.stepLimit == 1000)
        #expect(error.operations == 19)
        #expect(error.concurrency == 9)
        #expect(error.description.contains("stepLimit"))
        #expect(throws: LinearizabilityUndecided.self) { try history.requireLinearizable(stepLimit: 1000) }
    }

    @Test(arguments: [(0, false), (1, false), (2, true)])
    func `doesn't affect an order found within it`(limit: Int, isDecided: Bool) {
        let verdict = history(
            Counter(), .call("a", .increment), .back("a", 1), .call("a", .increment), .back("a", 2)
        ).check(stepLimit: limit)
        #expect(verdict.isLinearizable == isDecided)
        #expect(verdict.isUndecided == !isDecided)
    }

    @Test func `doesn't affect a history that is decided within it`() throws {
        try crowd(4, takes: [3, 2, 1, 0, nil]).requireLinearizable()
        #expect(throws: NotLinearizable.self) { try crowd(4, takes: [3, 2, 1, 3]).requireLinearizable() }
    }

    // This needs the memory of dead ends: without it, more than 8! orders would be tried.
    @Test func `isn't used up by states already tried in another order`() {
        let history = History(Counter())
        let calls = (0..<16).map { history.begin("caller \($0)", .increment) }
        for call in calls { call.end(returning: 99) }
        #expect(history.check(stepLimit: 100).report != nil)
        let reads = History(Register())
        let open = (0..<12).map { reads.begin("caller \($0)", .read) }
        for call in open { call.end(returning: 0) }
        reads.record("reader", .read) { 5 }
        #expect(reads.check(stepLimit: 12 * 4096).report != nil)
    }

    @Test func `is never reached by a thousand operations of four callers, which take a few steps each`() {
        var dice = Dice(seed: 7)
        var object = Register()
        let history = History(Register())
        var open: [(call: History<Register>.Call, answer: Int?)] = []
        while history.count < 1000 {
            if open.count < 4 {
                let operation = Register.random(&dice)
                open.append((history.begin("caller", operation), object.apply(operation)))
            } else {
                let next = open.remove(at: dice.roll(4))
                next.call.end(returning: next.answer)
            }
        }
        #expect(history.check(stepLimit: 10_000).isLinearizable)
    }

    @Test func `isn't used up by calls that never return and change nothing`() {
        let history = History(Register())
        for _ in 0..<60 { _ = history.begin("reader", .read) }
        for value in 1...20 { history.record("writer", .write(value)) { nil } }
        history.record("writer", .read) { 19 }
        #expect(history.check(stepLimit: 2_000).report != nil)
    }
}
