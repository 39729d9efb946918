/// The text that shows why a history has no order.
struct CounterexampleReport<Specification: SequentialSpecification> {
    /// The most operations of the order, and of those that can't come next, that the report shows, so that it fits a terminal.
    private static var shown: Int { 12 }

    private let numbered: NumberedStates<Specification>
    private let calls: [CallLog.Call]
    private let steps: [DeadEnd.Step]
    /// The calls that have to come next, but can't.
    private let stuck: [Int]
    /// The open calls, which may come next but do not help.
    private let idle: [Int]
    /// Whether the report leaves out the end of the history.
    private let isCut: Bool

    init(_ example: Counterexample<Specification>, of whole: CallLog) {
        numbered = example.numbered
        calls = example.log.calls
        steps = example.deadEnd.steps
        isCut = whole.events.count > example.log.events.count
        let placed = Set(steps.map(\.call))
        let (overlaps, position) = (Overlaps(example.log), example.deadEnd.position)
        let left = (0..<overlaps.candidateCount(at: position))
            .map { overlaps.candidate($0, at: position) }.filter { !placed.contains($0) }
        stuck = left.filter { example.log.calls[$0].hasReturned }
        idle = left.filter { !example.log.calls[$0].hasReturned }
    }

    var text: String {
        """
        Not linearizable: no order of these operations explains what they returned.

        \(history)

        Each operation takes effect at one moment of its line; operations whose lines overlap may do so in either order.
        All orders were tried. The one that gets furthest:

        \(order)

        \(stuck.count == 1 ? "This operation must come next, but it can't:" : "One of these must come next, but none can:")

        \(reasons.joined(separator: "\n"))
        """ + end
    }

    private var shownSteps: ArraySlice<DeadEnd.Step> { steps.suffix(Self.shown) }
    private var shownStuck: [Int] { stuck.prefix(Self.shown).sorted() }
    private var shownIdle: [Int] { Array(idle.prefix(Self.shown)) }

    private var history: String {
        let rows = (shownSteps.map(\.call) + shownStuck + shownIdle).sorted()
        let chart = IntervalChart(rows.map { (calls[$0].beginning, calls[$0].end) })
        let crossed = Set(shownStuck)
        var table = TextTable("#", "caller", "operation", "returned", "time →")
        for row in rows {
            let line = chart.line(from: calls[row].beginning, to: calls[row].end)
            let mark = crossed.contains(row) ? " ✗" : ""
            table.add("\(row + 1)", calls[row].caller, operation(row), outcome(row), line + mark)
        }
        return table.text
    }

    private var order: String {
        let earlier = steps.dropLast(Self.shown)
        var table = TextTable("#", "operation", "returned", "state afterwards")
        table.add("", earlier.isEmpty ? "(start)" : "(\(earlier.count) before)", "", state(earlier.last?.state ?? 0))
        for step in shownSteps {
            table.add("\(step.call + 1)", operation(step.call), outcome(step.call), state(step.state))
        }
        return table.text
    }

    private var reasons: [String] {
        let last = numbered.states[steps.last?.state ?? 0]
        var reasons = shownStuck.map { call in
            let right = numbered.specification.expectation(of: numbered.operations[call], in: last)
            let instead = right.map { "in this state it would return \($0)" } ?? "that is not allowed in this state"
            return "  #\(call + 1) \(operation(call)) returned \(outcome(call)); \(instead)."
        }
        if stuck.count > Self.shown { reasons.append("  … and \(stuck.count - Self.shown) more.") }
        if !idle.isEmpty {
            let names = idle.prefix(Self.shown).map { "#\($0 + 1)" } + (idle.count > Self.shown ? ["…"] : [])
            reasons.append("  It does not help if an open operation takes effect first: \(names.joined(separator: ", "))")
        }
        return reasons
    }

    /// A note on where the report ends, if the history is longer.
    private var end: String {
        guard isCut, let last = calls.indices.filter({ calls[$0].hasReturned }).max(by: { calls[$0].end < calls[$1].end })
        else { return "" }
        return "\n\nShown up to the return of #\(last + 1): what happened later makes no difference."
    }

    private func operation(_ call: Int) -> String { Wording.of(numbered.operations[call]) }
    private func outcome(_ call: Int) -> String { numbered.outcomes[call].map { Wording.of($0) } ?? "(open)" }
    private func state(_ number: Int) -> String { Wording.of(numbered.states[number]) }
}
