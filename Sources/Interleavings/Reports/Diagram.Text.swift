extension Diagram {
    /// The diagram as text: up to eight tasks fit a terminal of 80 columns; more make it wider.
    var text: String { Text(self).lines.joined(separator: "\n") }

    /// Lays out a diagram in lines of text.
    private struct Text {
        private let diagram: Diagram
        /// Where each column begins, and where the last one ends.
        private let edges: [Int]
        private(set) var lines: [String] = []

        /// The meaning of the marks.
        private static let legend = [
            ("●", "● did something"), ("•", "• ran, logged nothing"), ("──", "── time moved on"), ("✘", "✘ failed"),
        ]

        private static let page = 80
        /// Between two columns.
        private static let gap = 2
        /// Columns are as wide as their texts, up to this.
        private static let widths = 7...40
        /// How many lines a text may take before it spreads over the columns to its right, and how many at most.
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
            let usually = lines.contains { $0.contains("○") } ? "; ○ would have run" : ""
            let leaving = "► the schedule left the usual order here\(usually)"
            lines += ["", used.joined(separator: "   "), diagram.isUsual ? diagram.usualOrder : leaving]
        }

        /// Gives each column the width of its texts; if the page is too narrow, the widest columns are narrowed.
        private static func edges(of diagram: Diagram) -> [Int] {
            let numbers = diagram.rows.map { number(of: $0).count }.max() ?? 0
            var widths = diagram.columns.map { min(PlainText.cells($0.name), Self.widths.upperBound) }
            for case .action(let action) in diagram.rows {
                // The reason may spread to the right, and is repeated below in full.
                if action.mark == .failure, action.column < widths.count - 1 { continue }
                let widest = action.texts.map { PlainText.cells($0) }.max() ?? 0
                widths[action.column] = max(widths[action.column], min(widest + 2, Self.widths.upperBound))
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
            case .action(let action): add(action, row)
            case .silence(_, let columns):
                add(row, diagram.columns.indices.map { columns.contains($0) ? "•" : nil })
            case .time(let time, let isDecisive):
                let start = "\(isDecisive ? "►" : "─")─ \(PlainText.time(time)) "
                let end = max((edges.last ?? 0) - Self.gap, PlainText.cells(start) + 4)
                lines.append(start + String(repeating: "─", count: end - PlainText.cells(start)))
            case .gap(let text):
                lines.append("\(String(repeating: " ", count: edges[0]))⋮ \(text)")
            }
        }

        private mutating func add(_ action: Action, _ row: Int) {
            let mark =
                switch action.mark {
                case .usual: "●"
                case .decisive: "►"
                case .failure: "✘"
                }
            for (index, line) in wrapped(action).enumerated() {
                var cells: [String?] = diagram.columns.map { _ in nil }
                cells[action.column] = "\(index == 0 ? mark : "│") \(line)"
                if index == 0, let passedOver = action.passedOver { cells[passedOver] = "○" }
                add(row, cells, isFirst: index == 0)
            }
        }

        /// Returns an action's lines: as wide as the column, or wider if there would be too many.
        private func wrapped(_ action: Action) -> [String] {
            let right = action.passedOver.map { $0 > action.column ? $0 : edges.count - 1 } ?? edges.count - 1
            var lines: [String] = []
            for last in action.column..<max(right, action.column + 1) {
                let end = max(edges[last + 1] - Self.gap, last == edges.count - 2 ? Self.page : 0)
                lines = action.texts.flatMap { PlainText.wrap($0, to: end - edges[action.column] - 2, most: Self.mostLines) }
                if lines.count <= action.texts.count * (action.mark == .failure ? 1 : Self.fewLines) { break }
            }
            return lines
        }

        /// Sets one line; where a cell is `nil`, a task that is alive in the row continues its vertical line.
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
