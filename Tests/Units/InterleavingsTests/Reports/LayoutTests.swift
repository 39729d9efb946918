import Testing

@testable import Interleavings

/// Makes traces by hand.
struct Sketch {
    private(set) var trace = Trace()

    init(_ names: [String]) {
        trace.names = names
    }

    mutating func step(_ task: String, _ texts: [String] = [], by name: String? = nil, passing other: String? = nil) {
        let events = texts.map { Trace.Event(task: name ?? task, text: $0, kind: .event) }
        trace.steps.append(
            Trace.Step(
                number: trace.steps.count + 1, task: task, place: "pool", time: .zero, candidates: [task, "other"],
                pick: other == nil ? 0 : 1, passedOver: other, events: events))
    }

    var text: String { Diagram(trace, error: CancellationError()).text }
    var svg: String { Diagram(trace, error: CancellationError()).svg(caption: "a sketch") }
    /// The lines that show steps.
    var rows: [String] { text.split(separator: "\n", omittingEmptySubsequences: false).prefix { !$0.isEmpty }.map(String.init) }
}

@Suite struct `A diagram's layout` {
    @Test(arguments: 1...8)
    func `fits 80 columns with up to eight tasks, whatever they log`(count: Int) {
        let names = (0..<count).map { "worker number \($0) with a long name" }
        var sketch = Sketch(names)
        for name in names {
            sketch.step(name, ["says something that is rather long, and then goes on, and on, and on \(name)", "short"])
        }
        let lines = sketch.text.split(separator: "\n")
        #expect(lines.allSatisfy { PlainText.cells($0) <= 80 }, "\(sketch.text)")
        #expect(sketch.rows.count < 12 * count, "\(sketch.text)")
    }

    @Test func `grows wider with more than eight tasks`() {
        let names = (0..<20).map { "w\($0)" }
        var sketch = Sketch(names)
        for name in names { sketch.step(name, ["works"]) }
        #expect(names.allSatisfy { sketch.rows[0].contains($0) })
        #expect(sketch.rows.count == 21)
    }

    @Test func `aligns its columns with wide characters`() {
        var sketch = Sketch(["日本", "👩‍👩‍👧 family", "c"])
        sketch.step("日本", ["トークン"])
        sketch.step("👩‍👩‍👧 family", ["✅ done"])
        sketch.step("c", ["x"])
        #expect(
            sketch.rows == [
                "step  日本        👩‍👩‍👧 family  c",
                "   1  ● トークン",
                "   2  │           ● ✅ done",
                "   3  │           │          ● x",
            ])
    }

    @Test func `accepts any name and any text`() {
        let evil = "\u{1B}[2J\r\n\t\u{0}\u{85}\u{202E}\u{FFFE}\u{E0041}"
        var sketch = Sketch(["", evil, String(repeating: "long", count: 5_000)])
        sketch.step(evil, [evil, ""])
        sketch.step(String(repeating: "long", count: 5_000), [String(repeating: "x", count: 100_000)])
        sketch.step("task 3", ["by an unnamed task"], by: "")
        sketch.step("task 4", ["a\u{0301}" + String(repeating: "\u{0301}", count: 10_000)])
        #expect(!sketch.text.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" })
        #expect(!sketch.text.unicodeScalars.contains { $0 == "\u{202E}" })
        #expect(sketch.rows.allSatisfy { PlainText.cells($0) <= 80 })
        #expect(sketch.text.contains("by an unnamed task"))
        #expect(sketch.text.unicodeScalars.count < 5_000)
    }

    @Test func `gives each task a column, even if it logs nothing`() {
        var sketch = Sketch(["a"])
        sketch.step("a", ["works"])
        sketch.step("a.1")
        sketch.step("a.2", ["says so"])
        sketch.step("a.1", passing: "a")
        #expect(
            sketch.rows == [
                "step  a        a.1          a.2",
                "   1  ● works",
                "   2  │        •",
                "   3  │        │            ● says so",
                "   4  ○        ► continues  │",
            ])
    }

    @Test func `folds the child tasks that log nothing if there are many`() {
        var sketch = Sketch(["a"])
        sketch.step("a", ["works"])
        for number in 1...20 { sketch.step("a.\(number)", number == 15 ? ["says so"] : []) }
        sketch.step("a.19", passing: "a.18")
        let rows = sketch.rows.map { $0.split(separator: " ").joined(separator: " ") }
        #expect(rows[0] == "step a a.1 a.2 a.3 a.15 a.18 a.19 others")
        #expect(rows[2...4] == ["2–5 │ • • • •", "6–15 │ │ │ │ •", "16 │ │ │ │ ● says │"], "\(sketch.text)")
    }

    @Test func `joins silent steps in their order`() {
        var sketch = Sketch(["a", "b", "c"])
        for name in ["a", "b", "c"] { sketch.step(name, ["works"]) }
        for name in ["a", "b", "c", "b", "c", "a"] { sketch.step(name) }
        #expect(
            sketch.rows.suffix(3) == [
                " 4–6  •        •        •",
                " 7–8  │        •        •",
                "   9  •        │        │",
            ])
    }

    @Test func `marks where time moved though a task could run`() {
        var sketch = Sketch(["a"])
        sketch.step("a", ["works"])
        sketch.step("", passing: "a")
        #expect(sketch.rows.last == "►─ 0 s ──────")
        #expect(sketch.text.hasSuffix("\n► the schedule left the usual order here"))
    }

    @Test func `leaves out the middle of a long execution`() {
        var sketch = Sketch(["a", "b"])
        for number in 1...5_000 { sketch.step("a", ["turn \(number)"]) }
        sketch.step("b", ["comes late"])
        #expect(sketch.rows.count == 202)
        #expect(sketch.rows[61] == "      ⋮ 4801 rows are left out")
        #expect(sketch.rows[201] == "5001  │            ● comes late")
        #expect(sketch.rows[60] == "  60  ● turn 60")
    }

    @Test func `folds the steps that a livelock repeats`() {
        var sketch = Sketch(["a", "b"])
        sketch.step("a", ["begins"])
        for _ in 1...400 {
            sketch.step("a", ["asks"])
            sketch.step("b")
        }
        sketch.step("a", ["ends"])
        #expect(
            sketch.rows == [
                "step  a         b",
                "   1  ● begins",
                "   2  ● asks",
                "   3  │         •",
                "      ⋮ the 2 rows above repeat 399 more times",
                " 802  ● ends    │",
            ])
    }

    @Test func `is only the reason if there is no trace`() {
        #expect(Sketch([]).text == "✘ CancellationError()")
    }

    @Test(arguments: [
        (Duration.zero, "0 s"), (.seconds(3_600), "3600 s"), (.milliseconds(1_500), "1.5 s"), (.milliseconds(20), "20 ms"),
        (.microseconds(1_250), "1.25 ms"), (.nanoseconds(7), "7 ns"), (.microseconds(3), "3000 ns"),
    ])
    func `shows times with their units`(time: Duration, text: String) {
        #expect(PlainText.time(time) == text)
    }
}
