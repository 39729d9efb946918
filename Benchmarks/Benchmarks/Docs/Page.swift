import Foundation

/// `Docs/Performance.md`: its text is written by hand; this program writes its plots, and its tables between markers.
enum Page {
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    private static let path = "Docs/Performance.md"

    static func renew(with tables: [Table], machine: Machine) throws {
        var text = try String(contentsOfFile: path, encoding: .utf8)
        for table in tables { text = try replacing(table.id, in: text, with: table.markdown) }
        text = try replacing("machine", in: text, with: "Measured on: \(machine).")
        try redraw(from: tables)
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }

    private static func replacing(_ id: String, in text: String, with new: String) throws -> String {
        let (opening, closing) = ("<!-- begin \(id) -->", "<!-- end \(id) -->")
        guard let start = text.range(of: opening), let end = text.range(of: closing), start.upperBound <= end.lowerBound else {
            throw Problem(description: "\(path) has no '\(opening)' … '\(closing)': add them where the table belongs.")
        }
        return text.replacingCharacters(in: start.upperBound..<end.lowerBound, with: "\n\(new)\n")
    }

    /// Draws the plots again, from a run that `--json` has printed.
    static func redraw(from tables: [Table]) throws {
        for (name, svg) in plots(of: tables) {
            try svg.write(toFile: "Docs/\(name).svg", atomically: true, encoding: .utf8)
        }
    }

    private static func plots(of tables: [Table]) -> [(name: String, svg: String)] {
        func plot(_ id: String, _ draw: (Table) -> String) -> (String, String)? {
            tables.first { $0.id == id }.map { ("performance-\(id.prefix { $0 != "-" })", draw($0)) }
        }
        return [plot("hit", hits), plot("miss-group", misses), plot("refresh", latencies)].compactMap(\.self)
    }

    private static func hits(_ table: Table) -> String {
        // Hundreds of times as long as the others, whose bars would vanish beside it.
        let long = "stage 3, awaited"
        var shown = table
        shown.rows.removeAll { $0.name == long }
        let multiple = table.value(long, "ours ÷ it").map { Int((1 / $0.median).rounded()) } ?? 0
        return BarPlot(
            shown.multiples, column: "it ÷ ours", title: "A cached hit, compared with ours",
            axis: "time of one hit ÷ ours: median (quartiles); lower is better",
            notes: ["Left out, since its bar would dwarf the others: \(long), \(multiple) ×."]
        ).svg
    }

    private static func misses(_ table: Table) -> String {
        let columns = ["ours ÷ bare tasks", "ours ÷ Task.value", "ours ÷ stage 3"]
        var labels = LinePlot.Labels(
            title: "One miss that all callers share", x: "callers, in one task group",
            y: "our time for each caller ÷ theirs; below 1 ours is faster",
            notes: ["Medians. The table has the quartiles, and callers in tasks of their own."])
        labels.ends["ours ÷ Task.value"] = "ends at 10,000: more callers take minutes"
        return LinePlot(table, columns: columns, labels).svg
    }

    private static func latencies(_ table: Table) -> String {
        let base = "TokenService, no expiry"
        let names = table.rows.map(\.name).filter { $0 != base }
        let lines = table.turned(columns: ["p50.0", "p90.0", "p99.0", "p99.9", "p99.99", "highest"], dividedBy: base)
        let labels = LinePlot.Labels(
            title: "Latency while tokens expire", x: "percentile of 64 tasks' calls",
            y: "latency ÷ that of a TokenService whose token never expires",
            notes: ["“highest” is one call of each run; one was delayed without expiries, too.", "The table has the loads."])
        return LinePlot(lines, columns: names, shape: .steps, labels).svg
    }
}

extension Table {
    /// The first row as 1, and the others as multiples of it.
    fileprivate var multiples: Table {
        var table = Table(id: id, title: title)
        for (index, row) in rows.enumerated() {
            let value = index == 0 ? Sample(exactly: 1) : value(row.name, "ours ÷ it")?.inverse
            if let value { table.add(row.name, Cell(column: "it ÷ ours", value: value, unit: .ratio)) }
        }
        return table
    }

    /// Turns columns into rows, for a line plot, with each value divided by that of one of the rows.
    fileprivate func turned(columns: [String], dividedBy base: String) -> Table {
        var table = Table(id: id, title: title)
        table.rows = columns.map { column in
            let divisor = value(base, column)?.median ?? .nan
            let cells = rows.compactMap { row in
                value(row.name, column).map { Cell(column: row.name, value: Sample(exactly: $0.median / divisor), unit: .ratio) }
            }
            return Row(name: column.replacing(".0", with: ""), cells: cells)
        }
        return table
    }
}
