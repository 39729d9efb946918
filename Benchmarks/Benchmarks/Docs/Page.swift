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
        for (name, svg) in plots(of: tables) {
            try svg.write(toFile: "Docs/\(name).svg", atomically: true, encoding: .utf8)
        }
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }

    private static func replacing(_ id: String, in text: String, with new: String) throws -> String {
        let (opening, closing) = ("<!-- begin \(id) -->", "<!-- end \(id) -->")
        guard let start = text.range(of: opening), let end = text.range(of: closing), start.upperBound <= end.lowerBound else {
            throw Problem(description: "\(path) has no '\(opening)' … '\(closing)': add them where the table belongs.")
        }
        return text.replacingCharacters(in: start.upperBound..<end.lowerBound, with: "\n\(new)\n")
    }

    private static func plots(of tables: [Table]) -> [(name: String, svg: String)] {
        var plots: [(String, String)] = []
        if var hits = tables.first(where: { $0.id == "hit" }) {
            // Hundreds of times as long as the others, whose bars would vanish beside it.
            hits.rows.removeAll { $0.name == "stage 3, awaited" }
            let title = "A cached hit: multiples of ours (median and quartiles)"
            plots.append(("performance-hit", BarPlot(hits.multiples, column: "it ÷ ours", title: title).svg))
        }
        if let misses = tables.first(where: { $0.id == "miss-group" }) {
            plots.append(
                (
                    "performance-miss",
                    LinePlot(
                        misses, columns: ["ours ÷ bare tasks", "ours ÷ Task.value", "ours ÷ stage 3"],
                        title: "One miss: our time for each caller ÷ theirs, by the number of callers in a task group"
                    ).svg
                ))
        }
        if let refresh = tables.first(where: { $0.id == "refresh" }) {
            let base = "TokenService, no expiry"
            let names = refresh.rows.map(\.name).filter { $0 != base }
            let lines = refresh.turned(columns: ["p50.0", "p90.0", "p99.0", "p99.9", "p99.99", "highest"], dividedBy: base)
            let title = "Latency of 64 tasks' calls ÷ ours without expiry, by percentile"
            plots.append(("performance-refresh", LinePlot(lines, columns: names, title: title).svg))
        }
        return plots
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
