import Foundation

extension Table.Cell {
    /// The figure in a terminal and in Markdown: the median, and the quartiles where it has any.
    var text: String {
        let spread = value.low == value.high ? "" : " (\(number(value.low))–\(number(value.high)))"
        return number(value.median) + suffix + spread
    }

    private var suffix: String {
        switch unit {
        case .nanoseconds: " ns"
        case .microseconds: " µs"
        case .milliseconds: " ms"
        case .bytes: " B"
        case .kibibytes: " KiB"
        case .each, .perRun: ""
        case .perSecond: " /s"
        case .ratio: " ×"
        }
    }

    private func number(_ value: Double) -> String {
        guard unit != .ratio else { return String(format: value < 0.1 ? "%.3f" : "%.2f", value) }
        guard abs(value) < 100, value != value.rounded() else { return grouped(value) }
        return String(format: abs(value) < 10 ? "%.2f" : "%.1f", value)
    }

    private func grouped(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "\(value)" }
        var digits = String(Int(value.rounded().magnitude))
        var groups: [String] = []
        while digits.count > 3 {
            groups.insert(String(digits.suffix(3)), at: 0)
            digits.removeLast(3)
        }
        return (value < 0 ? "-" : "") + ([digits] + groups).joined(separator: ",")
    }
}

extension Table {
    private var columns: [String] {
        rows.flatMap(\.cells).map(\.column).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    private var lines: [[String]] {
        [[""] + columns]
            + rows.map { row in
                [row.name] + columns.map { column in row.cells.first { $0.column == column }?.text ?? "" }
            }
    }

    /// The table for a terminal.
    var text: String {
        let widths = (0...columns.count).map { column in lines.map { $0[column].count }.max() ?? 0 }
        let body = lines.map { line in
            line.enumerated().map { column, text in
                let space = String(repeating: " ", count: widths[column] - text.count)
                return column == 0 ? text + space : space + text
            }.joined(separator: "   ")
        }
        return ([title] + body + (note.map { [$0] } ?? [])).joined(separator: "\n") + "\n"
    }

    /// The table for Markdown: ratios, counts and sizes, without the figures that change with each run.
    var markdown: String {
        var kept = self
        kept.rows = rows.compactMap { row in
            let cells = row.cells.filter { !$0.unit.isOfOneRun }
            return cells.isEmpty ? nil : Row(name: row.name, cells: cells)
        }
        var lines = kept.lines.map { "| " + $0.joined(separator: " | ") + " |" }
        lines.insert("|---" + String(repeating: "|---:", count: kept.columns.count) + "|", at: 1)
        return lines.joined(separator: "\n")
    }
}
