/// The parts of an image.
extension Diagram.Image {
    mutating func drawNames(_ y: inout Int) {
        let names = diagram.columns.indices.map { column in
            PlainText.wrap(
                diagram.columns[column].name, to: widths[column] - Self.padding, most: 3, measure: { Self.pixels($0) * 9 / 8 })
        }
        let height = (names.map(\.count).max() ?? 1) * Self.leading + Self.padding
        for (column, lines) in names.enumerated() {
            svg.box("head", x: middles[column] - widths[column] / 2, y: y, width: widths[column], height: height)
            write(lines, "name", x: middles[column], y: y + (height - lines.count * Self.leading) / 2)
        }
        y += height + 10
    }

    /// - Parameter tops: The top of each row, and the bottom of the last one.
    mutating func drawLives(_ tops: [Int]) {
        for (column, middle) in zip(diagram.columns, middles) where !column.life.isEmpty {
            // To the end of the last row, but not into the next one.
            let end = tops[column.life.upperBound] - (column.life.upperBound < diagram.rows.count ? 6 : 0)
            svg.line("life", from: (middle, tops[column.life.lowerBound]), to: (middle, end))
        }
    }

    mutating func draw(_ row: Diagram.Row, _ top: Int) {
        let middle = top + height(of: row) / 2
        let edge = Self.margin + Self.gutter - 14
        switch row {
        case .action(let action): draw(action, top)
        case .silence(_, let columns): for column in columns { svg.circle("silence", x: middles[column], y: middle, radius: 4) }
        case .time(let time, let isDecisive):
            svg.line("ruler", from: (edge + 6, middle), to: (width - Self.margin, middle))
            if isDecisive { svg.circle("decisive", x: edge + 6, y: middle, radius: 4) }
            svg.text(PlainText.time(time), "clock", x: edge, y: middle + 4)
        case .gap(let text): svg.text("⋮ \(text)", "gap", x: edge, y: middle + 4)
        }
        let number = Diagram.number(of: row)
        if !number.isEmpty { svg.text(number, "number", x: edge, y: middle + 4) }
    }

    private mutating func draw(_ action: Diagram.Action, _ top: Int) {
        let lines = lines(action)
        let height = height(of: .action(action))
        let width = min((lines.map(Self.pixels).max() ?? 0) + 2 * Self.padding, widths[action.column])
        let (x, middle) = (middles[action.column], top + height / 2)
        if let passedOver = action.passedOver {
            drawSwitch(from: middles[passedOver], to: x + (passedOver < action.column ? -width : width) / 2, y: middle)
        }
        svg.box("\(action.mark)", x: x - width / 2, y: top, width: width, height: height)
        write(lines, "action", x: x, y: top + Self.padding / 2)
        if action.mark == .failure { cross(x: x - width / 2 - 1, y: top + 1) }
    }

    /// Draws an arrow from the column that would have run to the one that did.
    private mutating func drawSwitch(from start: Int, to end: Int, y: Int) {
        let back = end > start ? -1 : 1
        svg.line("switch", from: (start, y), to: (end + back, y))
        let (tip, wing) = (end + 2 * back, end + 9 * back)
        svg.add("path", ["class": "switch", "d": "M\(wing) \(y - 5)L\(tip) \(y)L\(wing) \(y + 5)"])
        svg.circle("passed", x: start, y: y, radius: 5)
        if abs(end - start) > 60 { svg.text("switch", "note", x: (start + end) / 2, y: y - 5) }
    }

    mutating func cross(x: Int, y: Int) {
        svg.add("path", ["class": "cross", "d": "M\(x - 5) \(y - 5)L\(x + 5) \(y + 5)M\(x + 5) \(y - 5)L\(x - 5) \(y + 5)"])
    }

    private mutating func write(_ lines: [String], _ kind: String, x: Int, y: Int) {
        for (index, line) in lines.enumerated() { svg.text(line, kind, x: x, y: y + 13 + index * Self.leading) }
    }

    /// Draws the legend of the marks that the diagram uses.
    mutating func drawLegend(_ y: inout Int) {
        func entry(_ text: String, if isUsed: Bool, _ mark: (inout SVG, _ x: Int, _ y: Int) -> Void) {
            guard isUsed else { return }
            mark(&svg, Self.margin + 10, y - 4)
            svg.text(text, "small", x: Self.margin + 28, y: y)
            y += 20
        }
        let hasTime = diagram.rows.contains { if case .time = $0 { true } else { false } }
        let hasSilence = diagram.rows.contains { if case .silence = $0 { true } else { false } }
        let actions = diagram.rows.compactMap { if case .action(let action) = $0 { action } else { nil } }
        entry("The schedule left the usual order here.", if: actions.contains { $0.mark == .decisive }) { svg, x, y in
            svg.box("decisive", x: x - 10, y: y - 7, width: 20, height: 14)
        }
        entry("In the usual order this task would have run.", if: actions.contains { $0.passedOver != nil }) { svg, x, y in
            svg.circle("passed", x: x, y: y, radius: 5)
        }
        entry("The task ran and logged nothing.", if: hasSilence) { svg, x, y in
            svg.circle("silence", x: x, y: y, radius: 4)
        }
        entry("Time moved on.", if: hasTime) { svg, x, y in
            svg.line("ruler", from: (x - 10, y), to: (x + 10, y))
        }
        entry(diagram.usualOrder, if: diagram.isUsual && !diagram.rows.isEmpty) { _, _, _ in }
    }
}
