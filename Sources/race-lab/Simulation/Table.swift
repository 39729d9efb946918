/// Columns that line up: the first one to the left, the others to the right, under headings of several lines.
struct Table {
    private let headings: [[String]]
    private let rows: [[String]]

    init(headings: [[String]], rows: [[String]]) {
        self.headings = headings
        self.rows = rows
    }

    /// The table, line by line, without trailing space.
    var lines: [String] {
        let height = headings.map(\.count).max() ?? 0
        let heads = (0..<height).map { line in
            // Headings are aligned at the bottom, however many lines they have.
            headings.map { lines in
                let missing = height - lines.count
                return line < missing ? "" : lines[line - missing]
            }
        }
        let widths = headings.indices.map { column in (heads + rows).map { $0[column].count }.max() ?? 0 }
        let rule = widths.map { String(repeating: "─", count: $0) }
        return (heads + [rule] + rows).map { Self.line($0, widths: widths) }
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
