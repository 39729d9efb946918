import Interleavings
import Testing

@Suite("Linearizability: the textbook's histories")
struct TextbookTests {
    @Test("no calls, and calls that never return, have an order")
    func nothing() {
        #expect(history(Counter()).check().isLinearizable)
        #expect(history(Counter(), .call("a", .increment), .call("b", .read)).check().isLinearizable)
    }

    @Test("two increments that overlap return different numbers", arguments: [(1, 2, true), (2, 1, true), (1, 1, false)])
    func lostUpdate(first: Int, second: Int, isRight: Bool) {
        let verdict = history(
            Counter(), .call("a", .increment), .call("b", .increment), .back("a", first), .back("b", second)
        ).check()
        #expect(verdict.isLinearizable == isRight)
        #expect((verdict.report != nil) == !isRight)
    }

    @Test("one after the other, the first call comes first", arguments: [(1, 2, true), (2, 1, false)])
    func realTime(first: Int, second: Int, isRight: Bool) {
        let verdict = history(
            Counter(), .call("a", .increment), .back("a", first), .call("b", .increment), .back("b", second)
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test("a read that overlaps a write may see it or not", arguments: [(0, true), (1, true), (2, false)])
    func overlappingRead(value: Int, isRight: Bool) {
        let verdict = history(
            Register(), .call("a", .write(1)), .call("b", .read), .back("b", value), .back("a", nil)
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test("once a read saw the write, a later read sees it too", arguments: [(1, 1, true), (0, 1, true), (1, 0, false)])
    func staleRead(first: Int, second: Int, isRight: Bool) {
        let verdict = history(
            Register(), .call("a", .write(1)),
            .call("b", .read), .back("b", first), .call("c", .read), .back("c", second), .back("a", nil)
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    // Herlihy, Wing 1990, figure 1: a queue's x and y are added in either order, if the two calls overlap.
    @Test("a queue gives what was added first, if one was first")
    func queue() {
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

    @Test("a queue gives an item once")
    func duplicate() {
        #expect(
            !history(
                Queue(), .call("a", .add(1)), .back("a", nil),
                .call("a", .take), .call("b", .take), .back("a", 1), .back("b", 1)
            ).check().isLinearizable)
    }

    @Test("a stack gives what was pushed last", arguments: [(2, true), (1, false), (nil, false)])
    func stack(popped: Int?, isRight: Bool) {
        let verdict = history(
            Stack(), .call("a", .push(1)), .back("a", nil), .call("a", .push(2)), .back("a", nil),
            .call("b", .pop), .back("b", popped)
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test("a call that never returned may have taken effect, at any later moment", arguments: [(0, 1), (1, 1), (0, 0)])
    func unfinished(first: Int, second: Int) {
        #expect(
            history(
                Register(), .call("a", .write(1)),
                .call("b", .read), .back("b", first), .call("b", .read), .back("b", second)
            ).check().isLinearizable)
    }

    @Test("a call that never returned takes effect once, and not before it was made")
    func unfinishedOnce() {
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

    @Test("a call that is answered twice has no order", arguments: [1, 2])
    func answeredTwice(second: Int) {
        let report = history(Counter(), .call("a", .increment), .back("a", 1), .back("a", second)).check().report
        #expect(
            report == """
                Not linearizable: #1, increment of 'a', returned twice: first 1, later \(second). A call returns once.
                """)
    }

    @Test("where several answers are right, any of them is", arguments: [(1, true), (2, true), (3, false), (nil, false)])
    func severalAnswers(taken: Int?, isRight: Bool) {
        let verdict = history(
            Bag(), .call("a", .add(1)), .back("a", nil), .call("a", .add(2)), .back("a", nil),
            .call("b", .take), .back("b", taken)
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test("what an unfinished call took is known from what others did not get")
    func unfinishedTake() {
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
