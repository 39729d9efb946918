extension Diagram {
    /// The diagram as text, for a terminal of 80 columns; with more than eight tasks it is as wide as it must be.
    var text: String { Text(self).lines.joined(separator: "\n") }

    /// Sets a diagram in lines.
    private struct Text {
        private let diagram: Diagram
        /// Where each column begins, and where the last one ends.
        private let edges: [Int]
        private(set) var lines: [String] = []

        /// What the marks mean.
        private static let legend = [
            ("●", "● did something"), ("•", "• went on, no more is known"), ("──", "── time moved on"), ("✘", "✘ failed"),
        ]

        private static let page = 80
        /// Between two columns.
        private static let gap = 2
        /// Columns are as wide as their texts, up to this.
        private static let widths = 7...40
        /// How many lines a text takes before it spreads over the columns to its right, and at most.
        private static let (fewLines, mostLines) = (2, 6)

        init(_ diagram: Diagram) {
            self.diagram = diagram
            edges = Self.edges(of: diagram)
            if !diagram.columns.isEmpty { addPicture() }
            let reason = diagram.reason.split(separator: "\n").flatMap { PlainText.wrap(String($0), to: Self.page - 2) }
            lines += reason.enumerated().map { ($0 == 0 ? "✘ " : "  ") + $1 }
            if !diagram.columns.isEmpty { addLegend() }
        }

        private mutating func addPicture() {
            let names = diagram.columns.indices.map { column in
                PlainText.wrap(diagram.columns[column].name, to: edges[column + 1] - edges[column] - Self.gap, most: 3)
            }
            for line in 0..<(names.map(\.count).max() ?? 0) {
                add(nil, names.map { $0.indices.contains(line) ? $0[line] : "" }, isFirst: line == 0)
            }
            for row in diagram.rows.indices { add(row) }
            lines.append("")
        }

        private mutating func addLegend() {
            let used = Self.legend.filter { mark, _ in lines.contains { $0.contains(mark) } }.map(\.1)
            let usually = lines.contains { $0.contains("○") } ? ", in which ○ would have run" : ""
            let leaving = "► the schedule left the usual order here\(usually)"
            lines += ["", used.joined(separator: "   "), diagram.isUsual ? usualOrder : leaving]
        }

        /// Gives each column what its texts need; if the page is too narrow for that, the widest get less.
        private static func edges(of diagram: Diagram) -> [Int] {
            let numbers = diagram.rows.map { number(of: $0).count }.max() ?? 0
            var widths = diagram.columns.map { min(PlainText.cells($0.name), Self.widths.upperBound) }
            for case .deed(let deed) in diagram.rows {
                // The reason may spread to the right, and stands below in full.
                if deed.mark == .failure, deed.column < widths.count - 1 { continue }
                let widest = deed.texts.map { PlainText.cells($0) }.max() ?? 0
                widths[deed.column] = max(widths[deed.column], min(widest + 2, Self.widths.upperBound))
            }
            let first = max(4, numbers) + gap
            let available = page - first - gap * (widths.count - 1)
            var limit = Self.widths.upperBound
            func given(_ width: Int) -> Int { max(min(width, limit), Self.widths.lowerBound) }
            while limit > Self.widths.lowerBound, widths.reduce(0, { $0 + given($1) }) > available { limit -= 1 }
            return widths.reduce(into: [first]) { edges, width in edges.append((edges.last ?? 0) + given(width) + gap) }
        }

        private mutating func add(_ row: Int) {
            switch diagram.rows[row] {
            case .deed(let deed): add(deed, row)
            case .silence(_, let columns):
                add(row, diagram.columns.indices.map { columns.contains($0) ? "•" : nil })
            case .time(let time, let isDecisive):
                let start = "\(isDecisive ? "►" : "─")─ \(PlainText.time(time)) "
                let end = max((edges.last ?? 0) - Self.gap, PlainText.cells(start) + 4)
                lines.append(start + String(repeating: "─", count: end - PlainText.cells(start)))
            case .gap(let count):
                lines.append("\(String(repeating: " ", count: edges[0]))⋮ \(count) rows are left out")
            }
        }

        private mutating func add(_ deed: Deed, _ row: Int) {
            let mark =
                switch deed.mark {
                case .usual: "●"
                case .decisive: "►"
                case .failure: "✘"
                }
            for (index, line) in wrapped(deed).enumerated() {
                var cells: [String?] = diagram.columns.map { _ in nil }
                cells[deed.column] = "\(index == 0 ? mark : "│") \(line)"
                if index == 0, let passedOver = deed.passedOver { cells[passedOver] = "○" }
                add(row, cells, isFirst: index == 0)
            }
        }

        /// The lines of what was done: as wide as the column, or as it takes to have few of them.
        private func wrapped(_ deed: Deed) -> [String] {
            let right = deed.passedOver.map { $0 > deed.column ? $0 : edges.count - 1 } ?? edges.count - 1
            var lines: [String] = []
            for last in deed.column..<max(right, deed.column + 1) {
                let end = max(edges[last + 1] - Self.gap, last == edges.count - 2 ? Self.page : 0)
                lines = deed.texts.flatMap { PlainText.wrap($0, to: end - edges[deed.column] - 2, most: Self.mostLines) }
                if lines.count <= deed.texts.count * (deed.mark == .failure ? 1 : Self.fewLines) { break }
            }
            return lines
        }

        /// Sets one line: where a cell is `nil` the column's line goes on, if it lives in the row.
        private mutating func add(_ row: Int?, _ cells: [String?], isFirst: Bool = true) {
            let number = isFirst ? row.map { Diagram.number(of: diagram.rows[$0]) } ?? "step" : ""
            var line = String(repeating: " ", count: max(edges[0] - Self.gap - number.count, 0)) + number
            var end = PlainText.cells(line)
            for (column, cell) in cells.enumerated() where edges[column] > end {
                let isAlive = row.map { diagram.columns[column].life.contains($0) } ?? false
                guard let text = cell ?? (isAlive ? "│" : nil), !text.isEmpty else { continue }
                line += String(repeating: " ", count: edges[column] - end) + text
                end = edges[column] + PlainText.cells(text)
            }
            lines.append(line)
        }
    }
}
