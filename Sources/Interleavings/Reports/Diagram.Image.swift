extension Diagram {
    /// The diagram as an image.
    ///
    /// - Parameter caption: The schedule and how to replay it.
    func svg(caption: String) -> String {
        var image = Image(self, caption: caption)
        return image.draw()
    }

    /// Lays out a diagram as an image, in pixels.
    struct Image {
        let diagram: Diagram
        let caption: String
        /// Each column's middle.
        let middles: [Int]
        /// How wide the box of a column may be.
        let widths: [Int]
        let width: Int
        let title: [String]
        var svg = SVG()

        static let margin = 20
        /// The width of the column for step numbers and times.
        static let gutter = 56
        static let gap = 20
        /// The distance from one line of text to the next.
        static let leading = 17
        /// The space between a text and its box.
        static let padding = 10
        private static let mostLines = 8

        init(_ diagram: Diagram, caption: String) {
            self.diagram = diagram
            self.caption = caption
            let texts = diagram.columns.indices.map { column in
                diagram.rows.reduce(into: [diagram.columns[column].name]) { texts, row in
                    if case .action(let action) = row, action.column == column { texts += action.texts }
                }
            }
            widths = texts.map { texts in min(max((texts.map(Self.pixels).max() ?? 0) + 2 * Self.padding, 80), 220) }
            var (middles, x) = ([Int](), Self.margin + Self.gutter)
            for width in widths {
                middles.append(x + width / 2)
                x += width + Self.gap
            }
            self.middles = middles
            width = max(x - Self.gap + Self.margin, 640)
            let inner = width - 2 * Self.margin - 30
            title = diagram.reason.split(separator: "\n").flatMap { line in
                PlainText.wrap(String(line), to: inner * 13 / 17, most: Self.mostLines, measure: Self.pixels)
            }
        }

        /// Estimates the width of a text in a sans-serif font of 13 pixels, erring on the high side.
        static func pixels(_ text: String) -> Int {
            text.reduce(0) { width, character in
                switch character {
                case "i", "j", "l", "t", "f", "r", "I", ".", ",", ":", ";", "'", "|", "!", "(", ")", "[", "]", " ": width + 5
                case "m", "w", "M", "W", "@", "%", "—", "…": width + 13
                case "A"..."Z", "_", "<", ">", "=", "+", "&": width + 11
                default: width + 8 * PlainText.cells(String(character))
                }
            }
        }

        func lines(_ action: Action) -> [String] {
            action.texts.flatMap {
                PlainText.wrap($0, to: widths[action.column] - 2 * Self.padding, most: Self.mostLines, measure: Self.pixels)
            }
        }

        func height(of row: Row) -> Int {
            switch row {
            case .action(let action): lines(action).count * Self.leading + Self.padding
            case .silence: 10
            case .time, .gap: 20
            }
        }

        mutating func draw() -> String {
            var y = Self.margin + Self.leading
            cross(x: Self.margin + 7, y: y - 5)
            for line in title {
                svg.text(line, "title", x: Self.margin + 24, y: y)
                y += 22
            }
            svg.text(caption, "small", x: Self.margin + 24, y: y)
            y += 18
            drawNames(&y)
            var tops: [Int] = []
            for row in diagram.rows {
                tops.append(y)
                y += height(of: row) + 6
            }
            drawLives(tops + [y])
            for (row, top) in zip(diagram.rows, tops) { draw(row, top) }
            y += Self.leading
            drawLegend(&y)
            return svg.document(width: width, height: y + Self.margin, title: diagram.reason)
        }
    }
}
