import AccessTokensTesting
import Interleavings
import TestBudgets
import Testing
import TokenServiceConcurrency

/// The allowed answers of a shared record, for the explorer's general search.
private struct Register: SequentialSpecification {
    enum Operation: Sendable {
        case load
        case swap(String, ifAt: String?)
    }

    enum Outcome: Sendable, Hashable {
        case sees(String?)
        case replaces
        case throwsError
    }

    let initialState: String?

    func states(after operation: Operation, returning outcome: Outcome?, in content: String?) -> [String?] {
        switch (operation, outcome) {
        case (.load, .sees(let seen)): seen == content ? [content] : []
        case (.load, _): [content]
        case (.swap(let new, let expected), .replaces): content == expected ? [new] : []
        case (.swap(_, let expected), .sees(let seen)): content != expected && seen == content ? [content] : []
        case (.swap(let new, let expected), nil): [content == expected ? new : content]
        default: []
        }
    }

    func expectation(of operation: Operation, in content: String?) -> String? { nil }
}

@Suite struct `A shared record's history` {
    /// Plays operations of several callers on a record that is sometimes mistaken, and has both checks judge the same history.
    private func play(_ random: inout SplitMix64) -> (own: String?, general: Bool?) {
        let initial: String? = Bool.random(using: &random) ? "0" : nil
        let own = RegisterHistory(initial: initial), general = History(Register(initialState: initial))
        var record = initial, written = [initial], running: [() -> Void] = []
        let mistakes = Int.random(in: 0...3, using: &random)
        for number in 1...9 {
            let name = "caller \(number % 3)", isMistaken = Int.random(in: 0..<10, using: &random) < mistakes
            let seen = isMistaken ? written.randomElement(using: &random) ?? record : record
            let throwsError = Int.random(in: 0..<5, using: &random) == 0
            if Bool.random(using: &random) {
                let (one, other) = (own.begin(name), general.begin(name, .load))
                running.append {
                    own.end(one, throwsError ? .throwsError : .sees(seen))
                    other.end(returning: throwsError ? .throwsError : .sees(seen))
                }
            } else {
                let new = "\(number)", expected = written.randomElement(using: &random) ?? record
                let (one, other) = (own.begin(name, swap: (new, expected)), general.begin(name, .swap(new, ifAt: expected)))
                let replaces = expected == record || isMistaken
                if replaces, !throwsError || Bool.random(using: &random) {
                    record = new
                    written.append(new)
                }
                if throwsError { continue }
                running.append {
                    own.end(one, replaces ? .replaces : .sees(seen))
                    other.end(returning: replaces ? .replaces : .sees(seen))
                }
            }
            while !running.isEmpty, Bool.random(using: &random) {
                running.remove(at: Int.random(in: running.indices, using: &random))()
            }
        }
        for end in running { end() }
        let verdict: Bool? =
            switch general.check() {
            case .linearizable: true
            case .notLinearizable: false
            default: nil
            }
        return (own.problem(), verdict)
    }

    @Test func `is judged as the general search judges it`() {
        var verdicts: [Bool: Int] = [:]
        for seed in 0..<UInt64(5_000) {
            var random = SplitMix64(seed: seed)
            let (own, general) = play(&random)
            #expect(general == (own == nil), "seed \(seed): \(own ?? "explained")")
            verdicts[own == nil, default: 0] += 1
        }
        // Neither kind is rare.
        #expect(verdicts[true, default: 0] > 500 && verdicts[false, default: 0] > 500, "\(verdicts)")
    }

    @Test func `names the two operations that one record can't explain`() {
        let history = RegisterHistory(initial: "a")
        history.end(history.begin("caller 1", swap: ("b", "a")), .replaces)
        #expect(history.problem() == nil)
        history.end(history.begin("caller 2"), .sees("a"))
        #expect(history.problem() == "caller 1 replaces a by b; and later, caller 2 loads, and is answered a")
    }
}
