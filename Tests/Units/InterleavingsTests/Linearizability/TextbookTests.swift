import Interleavings
import Testing

@Suite struct `The linearizability checker` {
    @Test func `accepts an empty history, and calls that never return`() {
        #expect(history(Counter()).check().isLinearizable)
        #expect(history(Counter(), .call("a", .increment), .call("b", .read)).check().isLinearizable)
    }

    @Test(arguments: [(1, 2, true), (2, 1, true), (1, 1, false)])
    func `requires that overlapping increments return different numbers`(first: Int, second: Int, isRight: Bool) {
        let verdict = history(
            Counter(), .call("a", .increment), .call("b", .increment), .back("a", first), .back("b", second)
        ).check()
        #expect(verdict.isLinearizable == isRight)
        #expect((verdict.report != nil) == !isRight)
    }

    @Test(arguments: [(1, 2, true), (2, 1, false)])
    func `keeps the order of calls that do not overlap`(first: Int, second: Int, isRight: Bool) {
        let verdict = history(
            Counter(), .call("a", .increment), .back("a", first), .call("b", .increment), .back("b", second)
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test(arguments: [(0, true), (1, true), (2, false)])
    func `lets a read see an overlapping write or not`(value: Int, isRight: Bool) {
        let verdict = history(
            Register(), .call("a", .write(1)), .call("b", .read), .back("b", value), .back("a", nil)
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test(arguments: [(1, 1, true), (0, 1, true), (1, 0, false)])
    func `requires a later read to see a write that an earlier one saw`(first: Int, second: Int, isRight: Bool) {
        let verdict = history(
            Register(), .call("a", .write(1)),
            .call("b", .read), .back("b", first), .call("c", .read), .back("c", second), .back("a", nil)
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    // Herlihy, Wing 1990, figure 1: a queue's x and y are added in either order, if the two calls overlap.
    @Test func `requires a queue to return the item that was added first`() {
        #expect(
            history(
                Queue(), .call("a", .add(1)), .call("b", .add(2)), .back("b", nil), .back("a", nil),
                .call("a", .take), .back("a", 2), .call("b", .take), .back("b", 1)
            ).check().isLinearizable)
        #expect(
            !history(
                Queue(), .call("a", .add(1)), .back("a", nil), .call("b", .add(2)), .back("b", nil),
                .call("a", .take), .back("a", 2), .call("b", .take), .back("b", 1)
            ).check().isLinearizable)
    }

    @Test func `lets a queue return an item once`() {
        #expect(
            !history(
                Queue(), .call("a", .add(1)), .back("a", nil),
                .call("a", .take), .call("b", .take), .back("a", 1), .back("b", 1)
            ).check().isLinearizable)
    }

    @Test(arguments: [(2, true), (1, false), (nil, false)])
    func `requires a stack to return the item that was pushed last`(popped: Int?, isRight: Bool) {
        let verdict = history(
            Stack(), .call("a", .push(1)), .back("a", nil), .call("a", .push(2)), .back("a", nil),
            .call("b", .pop), .back("b", popped)
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test(arguments: [(0, 1), (1, 1), (0, 0)])
    func `lets a call that never returned take effect at any later moment, or never`(first: Int, second: Int) {
        #expect(
            history(
                Register(), .call("a", .write(1)),
                .call("b", .read), .back("b", first), .call("b", .read), .back("b", second)
            ).check().isLinearizable)
    }

    @Test func `lets a call that never returned take effect only once, and not before it was made`() {
        #expect(
            !history(
                Register(), .call("a", .write(1)),
                .call("b", .read), .back("b", 1), .call("b", .read), .back("b", 0)
            ).check().isLinearizable)
        #expect(!history(Register(), .call("b", .read), .back("b", 1), .call("a", .write(1))).check().isLinearizable)
        #expect(
            !history(
                Counter(), .call("a", .increment), .call("b", .read), .back("b", 2)
            ).check().isLinearizable)
    }

    @Test(arguments: [1, 2])
    func `rejects a call with two answers`(second: Int) {
        let report = history(Counter(), .call("a", .increment), .back("a", 1), .back("a", second)).check().report
        #expect(
            report == """
                Not linearizable: #1, increment of 'a', returned twice: first 1, later \(second). A call returns once.
                """)
    }

    @Test(arguments: [(1, true), (2, true), (3, false), (nil, false)])
    func `accepts any of several right answers`(taken: Int?, isRight: Bool) {
        let verdict = history(
            Bag(), .call("a", .add(1)), .back("a", nil), .call("a", .add(2)), .back("a", nil),
            .call("b", .take), .back("b", taken)
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test func `infers what an unfinished call took from what the others did not get`() {
        func verdict(_ last: Int?) -> LinearizabilityVerdict {
            history(
                Bag(), .call("a", .add(1)), .back("a", nil), .call("a", .add(2)), .back("a", nil),
                .call("b", .take), .call("c", .take), .back("c", 2), .call("d", .take), .back("d", last)
            ).check()
        }
        #expect(verdict(1).isLinearizable)
        #expect(verdict(nil).isLinearizable)
        #expect(!verdict(2).isLinearizable)
    }
}
