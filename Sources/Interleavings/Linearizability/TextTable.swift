/// Rows of text in aligned columns.
struct TextTable {
    private var rows: [[String]]

    init(_ titles: String...) {
        rows = [titles]
    }

    mutating func add(_ row: String...) {
        rows.append(row)
    }

    /// The rows, indented, without trailing spaces.
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

/// Calls as lines over time, one row each: `├──┤`.
///
/// Time is counted in beginnings and ends: the chart shows their order only.
struct IntervalChart {
    private let columns: [Int: Int]
    private let end: Int

    /// - Parameter intervals: The beginnings and ends; `Int.max` means that there is no end.
    init(_ intervals: [(beginning: Int, end: Int)]) {
        let moments = intervals.flatMap { [$0.beginning, $0.end] }.filter { $0 != .max }.sorted()
        let step = moments.count > 16 ? 2 : 3
        columns = Dictionary(uniqueKeysWithValues: moments.enumerated().map { ($1, $0 * step) })
        end = moments.count * step
    }

    /// Returns the line of one call; without an end it extends beyond all others.
    func line(from beginning: Int, to last: Int) -> String {
        let start = columns[beginning] ?? 0
        let space = String(repeating: " ", count: start)
        guard let stop = columns[last] else {
            return space + "├" + String(repeating: "─", count: end - start - 1) + "┄┄"
        }
        return space + "├" + String(repeating: "─", count: stop - start - 1) + "┤"
    }
}

/// Describes values in one short line.
enum Wording {
    private static let limit = 60

    /// Returns a value's description, without line breaks and shortened; an optional's content.
    static func of(_ value: some Any) -> String {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional, let content = mirror.children.first?.value { return of(content) }
        let words = String(describing: value).split(whereSeparator: \.isNewline).joined(separator: " ")
        return words.count > limit ? words.prefix(limit - 1) + "…" : words
    }
}
