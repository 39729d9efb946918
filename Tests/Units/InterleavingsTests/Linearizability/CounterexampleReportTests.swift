import Interleavings
import Testing
import TokenServiceConcurrency

@Suite struct `A counterexample's report` {
    @Test func `shows a lost update: the timeline, the order that gets furthest, and why no operation can come next`() {
        let history = history(
            Counter(), .call("caller 1", .increment), .call("caller 2", .increment), .back("caller 1", 1),
            .back("caller 2", 1), .call("caller 1", .read), .back("caller 1", 1))
        #expect(
            history.check().report == """
                Not linearizable: no order of these operations explains what they returned.

                  #  caller    operation  returned  time →
                  1  caller 1  increment  1         ├─────┤
                  2  caller 2  increment  1            ├─────┤ ✗

                Each operation takes effect at one moment of its line; operations whose lines overlap may do so in either order.
                All orders were tried. The one that gets furthest:

                  #  operation  returned  state afterwards
                     (start)              Counter(value: 0)
                  1  increment  1         Counter(value: 1)

                This operation must come next, but it can't:

                  #2 increment returned 1; in this state it would return 2.

                Shown up to the return of #2: what happened later makes no difference.
                """)
    }

    @Test func `ends at the wrong answer, not where a search gets stuck over it`() throws {
        // A search of the whole history would blame 'a' for returning 2, since no other call returned 1. But 'b' is wrong.
        let report = history(
            Counter(), .call("a", .increment), .call("b", .increment), .back("a", 2), .call("c", .read), .back("c", 2),
            .back("b", 9), .call("d", .read), .back("d", 2)
        ).check().report
        #expect(try #require(report).contains("#2 increment returned 9; in this state it would return 1."))
        #expect(try #require(report).contains("Shown up to the return of #2:"))
        #expect(try !#require(report).contains("  d  "))
    }

    @Test func `shows unfinished calls as open, and an answer that nothing allows as not allowed`() throws {
        let report = history(
            Bag(), .call("d", .add(7)), .call("a", .add(1)), .back("a", nil), .call("b", .take), .back("b", 3)
        ).check().report
        let lines = try #require(report).split(separator: "\n")
        #expect(lines.contains("  1  d       add(7)     (open)    ├──────────────┄┄"))
        #expect(lines.contains("  3  b       take       3                  ├──┤ ✗"))
        #expect(lines.contains("  #3 take returned 3; that is not allowed in this state."))
        #expect(lines.contains("  It does not help if an open operation takes effect first: #1"))
        #expect(!lines.contains { $0.hasPrefix("Shown up to") })
    }

    @Test func `shows the end of a long history`() throws {
        let history = History(Counter())
        for value in 1...1000 { history.record("a", .increment) { value } }
        history.record("b", .read) { 7 }
        let lines = try #require(history.check().report).split(separator: "\n")
        #expect(lines.count < 40)
        #expect(lines.contains("        (988 before)            Counter(value: 988)"))
        #expect(lines.contains("  #1001 read returned 7; in this state it would return 1000."))
    }

    @Test func `shows some of many stuck or open calls`() throws {
        let history = History(Register())
        let reads = (0..<40).map { history.begin("reader \($0)", .read) }
        for number in 0..<40 { _ = history.begin("reader \(number + 40)", .read) }
        for read in reads { read.end(returning: 99) }
        let report = try #require(history.check().report)
        #expect(report.split(separator: "\n").count < 60)
        #expect(report.contains("  #1 read returned 99; in this state it would return 0."))
        #expect(report.contains("open operation takes effect first: #2, #3, #4, #5, #6, #7, #8, #9, #10, #11, #12, #13, …\n"))
    }

    @Test func `shows each value as one short line`() throws {
        struct Wordy: SequentialModel {
            var text = "two\nlines"
            mutating func apply(_ operation: String) -> String? {
                defer { text += operation }
                return operation
            }
        }
        let report = history(
            Wordy(), .call("a", String(repeating: "x", count: 200)), .back("a", nil)
        ).check().report
        #expect(try #require(report).contains("two\\nlines"))
        #expect(try #require(report).contains(" returned nil; in this state it would return xxx"))
        #expect(try #require(report).split(separator: "\n").allSatisfy { $0.count < 200 })
    }

    @Test func `is the same for the same history`() {
        func report() -> String? {
            var dice = Dice(seed: 4)
            let history = History(Queue())
            let calls = (0..<6).map { history.begin("caller \($0)", .add($0 + dice.roll(2))) }
            for call in calls.shuffled(using: &dice) { call.end(returning: nil) }
            for _ in 0..<6 { history.record("reader", .take) { dice.roll(20) } }
            return history.check().report
        }
        let first = report()
        #expect(first != nil)
        #expect((0..<20).allSatisfy { _ in report() == first })
    }
}
