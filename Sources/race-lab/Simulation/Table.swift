/// Columns that line up: the first one to the left, the others to the right, under headings of several lines.
///
/// Where that takes more columns than a line has, it is a list: each row is a group of lines, one for each of its cells.
struct Table {
    private let headings: [[String]]
    private let rows: [[String]]

    init(headings: [[String]], rows: [[String]]) {
        self.headings = headings
        self.rows = rows
    }

    /// The table, line by line, without trailing space.
    var lines: [String] {
        let table = aligned
        return table.allSatisfy { $0.count <= Console.columns } ? table : list
    }

    private var list: [String] {
        let names = headings.dropFirst().map { $0.joined(separator: " ") }
        return rows.flatMap { row in
            let cells = zip(names, row.dropFirst()).map { [$0, $1] }
            return row.prefix(1) + Table(headings: [[], []], rows: cells).aligned.map { "  " + $0 }
        }
    }

    private var aligned: [String] {
        let height = headings.map(\.count).max() ?? 0
        let heads = (0..<height).map { line in
            // Headings are aligned at the bottom, however many lines they have.
            headings.map { lines in
                let missing = height - lines.count
                return line < missing ? "" : lines[line - missing]
            }
        }
        let widths = headings.indices.map { column in (heads + rows).map { $0[column].count }.max() ?? 0 }
        let rule = heads.isEmpty ? [] : [widths.map { String(repeating: "─", count: $0) }]
        return (heads + rule + rows).map { Self.line($0, widths: widths) }
    }

    private static func line(_ cells: [String], widths: [Int]) -> String {
        let padded = zip(cells, widths).enumerated().map { column, cell in
            let space = String(repeating: " ", count: cell.1 - cell.0.count)
            return column == 0 ? cell.0 + space : space + cell.0
        }
        let line = padded.joined(separator: "  ")
        return String(line.reversed().drop { $0 == " " }.reversed())
    }
}

extension String {
    /// The text in lines that fit the lab's page, all but the first one indented; a word that is longer stays whole.
    func wrapped(to width: Int = Console.columns, indent: Int) -> String {
        var words = split(separator: " ", omittingEmptySubsequences: false)[...]
        var lines = [String(words.popFirst() ?? "")]
        for word in words {
            let line = lines[lines.count - 1]
            if line.count + 1 + word.count > width, line.contains(where: { $0 != " " }) {
                lines.append(String(repeating: " ", count: indent) + word)
            } else {
                lines[lines.count - 1] = "\(line) \(word)"
            }
        }
        return lines.joined(separator: "\n")
    }
}
