/// Rows of text in columns that stand below each other.
struct TextTable {
    private var rows: [[String]]

    init(_ titles: String...) {
        rows = [titles]
    }

    mutating func add(_ row: String...) {
        rows.append(row)
    }

    /// The rows, indented, without spaces at their ends.
    var text: String {
        let widths = rows.reduce(into: [Int](repeating: 0, count: rows[0].count)) { widths, row in
            for (column, cell) in row.enumerated() { widths[column] = max(widths[column], cell.count) }
        }
        return rows.map { row in
            let cells = zip(row, widths).map { cell, width in cell + String(repeating: " ", count: width - cell.count) }
            return String("  " + cells.joined(separator: "  ").reversed().drop { $0 == " " }.reversed())
        }.joined(separator: "\n")
    }
}
