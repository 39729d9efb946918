import Foundation
import Testing

@testable import race_lab

@Suite struct `Tables and text` {
    @Test func `columns line up under headings of different heights`() {
        let table = Table(
            headings: [["name"], ["a", "long", "one"], ["b"]], rows: [["x", "1", "23456"], ["longer", "22", "3"]])
        #expect(
            table.lines == [
                "           a",
                "        long",
                "name     one      b",
                "──────  ────  ─────",
                "x          1  23456",
                "longer    22      3",
            ])
    }

    @Test(arguments: [19, 18])
    func `a table that is wider than the window is a list`(columns: Int) {
        let table = Table(
            headings: [["name"], ["a", "long", "one"], ["b"]], rows: [["x", "1", "23456"], ["longer", "22", "3"]])
        let lines = Console.$columns.withValue(columns) { table.lines }
        if columns == 19 { return #expect(lines[2] == "name     one      b") }
        #expect(
            lines == [
                "x",
                "  a long one      1",
                "  b           23456",
                "longer",
                "  a long one  22",
                "  b            3",
            ])
    }

    @Test(arguments: [("loads", "loads"), ("load", "load"), ("loads of", "load…"), ("", "")])
    func `a progress line longer than the window is cut, so that erasing it leaves nothing behind`(
        _ text: String, shown: String
    ) {
        #expect(Console.activity(text, columns: 6) == "\r\u{1B}[K\(shown)")
    }

    @Test func `a file that is no terminal counts as 80 columns`() throws {
        let pipe = Pipe()
        #expect(Console.width(of: pipe.fileHandleForWriting.fileDescriptor) == 80)
    }

    @Test func `lines wrap between words and keep the space of a column`() {
        #expect("name  one two three".wrapped(to: 12, indent: 6) == "name  one\n      two\n      three")
        #expect("unbreakable".wrapped(to: 4, indent: 2) == "unbreakable")
        #expect("   1 s  two".wrapped(to: 8, indent: 8) == "   1 s \n        two")
    }

    @Test(
        arguments: [
            (Duration.zero, "0 ns"), (.nanoseconds(999), "999 ns"), (.nanoseconds(1_240), "1.2 µs"),
            (.microseconds(44), "44 µs"), (.milliseconds(1_500), "1.5 s"), (.seconds(119), "119 s"),
            (.seconds(3600), "60 min"), (.seconds(7_920), "2.2 h"),
        ])
    func `durations have a suitable unit`(_ duration: Duration, _ text: String) {
        #expect(duration.short == text)
    }
}
