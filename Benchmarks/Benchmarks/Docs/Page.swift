import Foundation

/// `Docs/Performance.md`: its words are written by hand, its tables between markers and its plots by this program.
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
            throw Problem(description: "\(path) has no '\(opening)' … '\(closing)': say there where the table belongs.")
        }
        return text.replacingCharacters(in: start.upperBound..<end.lowerBound, with: "\n\(new)\n")
    }

    private static func plots(of tables: [Table]) -> [(name: String, svg: String)] {
        var plots: [(String, String)] = []
        if var hits = tables.first(where: { $0.id == "hit" }) {
            // Hundreds of times as long as the others, which would be no bars beside it.
            hits.rows.removeAll { $0.name == "stage 3, awaited" }
            plots.append(("performance-hit", BarPlot(hits, column: "each", title: "A cached hit, ns (median and quartiles)").svg))
        }
        if let misses = tables.first(where: { $0.id == "miss-group" }) {
            plots.append(
                (
                    "performance-miss",
                    LinePlot(
                        misses, columns: ["TokenService", "Task.value", "stage 3"],
                        title: "One miss: ns for each caller, by the number of callers in a task group"
                    ).svg
                ))
        }
        if let refresh = tables.first(where: { $0.id == "refresh" }) {
            let names = refresh.rows.map(\.name)
            let lines = refresh.turned(columns: ["p50.0", "p90.0", "p99.0", "p99.9", "p99.99", "highest"])
            plots.append(
                ("performance-refresh", LinePlot(lines, columns: names, title: "Latency in µs, 64 tasks, by percentile").svg))
        }
        return plots
    }
}

extension Table {
    /// Rows for columns: what a line plot goes along.
    fileprivate func turned(columns: [String]) -> Table {
        var table = Table(id: id, title: title)
        table.rows = columns.map { column in
            Row(
                name: column.replacing(".0", with: ""),
                cells: rows.compactMap { row in
                    row.cells.first { $0.column == column }.map { Cell(column: row.name, value: $0.value, unit: $0.unit) }
                })
        }
        return table
    }
}
