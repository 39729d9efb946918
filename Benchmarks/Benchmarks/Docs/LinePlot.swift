import Foundation

/// One line for each column, along the rows, on a logarithmic scale, with the lines' names below.
struct LinePlot {
    /// How a line goes from one row to the next.
    enum Shape {
        /// Straight: between two rows that were measured, others could have been.
        case straight
        /// In steps: a row holds up to the next one, as a percentile does.
        case steps
    }

    /// The texts beside the plot.
    struct Labels {
        let title: String
        let x: String
        let y: String
        /// Why a column's line ends before the last row.
        var ends: [String: String] = [:]
        var notes: [String] = []
    }

    private static let left = 64.0, right = 468.0, top = 66.0, bottom = 316.0

    let svg: String

    init(_ table: Table, columns: [String], shape: Shape = .straight, _ labels: Labels) {
        let values = table.rows.flatMap(\.cells).filter { columns.contains($0.column) }.map(\.value.median)
        let scale = Scale(values, from: Self.bottom, to: Self.top)
        let bands = Double(max(shape == .steps ? table.rows.count : table.rows.count - 1, 1))
        func x(_ row: Double) -> Double { Self.left + (Self.right - Self.left) * row / bands }
        var drawing = Drawing(height: Self.bottom + 62 + 20 * Double(columns.count) + 16 * Double(labels.notes.count))
        drawing.text(labels.title, x: 12, y: 24, class: "h")
        drawing.text(labels.y, x: 12, y: 48, class: "a")
        for value in scale.marks {
            let y = scale.place(of: value)
            drawing.line(x1: Self.left, y1: y, x2: Self.right, y2: y, class: value == 1 ? "q" : "g")
            let text = value < 1 ? "\(value)" : Int(value).formatted(.number.locale(Locale(identifier: "en_US")))
            drawing.text(text, x: Self.left - 8, y: y + 4, anchor: .end, class: "s")
        }
        for (index, row) in table.rows.enumerated() {
            let isLast = shape == .straight && index == table.rows.count - 1
            let place = x(Double(index) + (shape == .steps ? 0.5 : 0))
            drawing.text(Self.short(row.name), x: place, y: Self.bottom + 18, anchor: isLast ? .end : .middle, class: "s")
        }
        drawing.text(labels.x, x: Self.right, y: Self.bottom + 38, anchor: .end, class: "a")
        for (index, column) in columns.enumerated() {
            let found = table.rows.enumerated().compactMap { number, row in
                row.cells.first { $0.column == column }.map { (x: Double(number), y: scale.place(of: $0.value.median)) }
            }
            let colour = Drawing.colours[index]
            switch shape {
            case .straight: drawing.path(found.map { (x($0.x), $0.y) }, colour: colour, hasPoints: true)
            case .steps: drawing.path(found.flatMap { [(x($0.x), $0.y), (x($0.x + 1), $0.y)] }, colour: colour, hasPoints: false)
            }
            let y = Self.bottom + 62 + 20 * Double(index)
            drawing.bar(x: 12, y: y - 10, width: 11, height: 11, colour: colour)
            drawing.text(column + (labels.ends[column].map { " – \($0)" } ?? ""), x: 30, y: y)
        }
        for (index, note) in labels.notes.enumerated() {
            let y = Self.bottom + 62 + 20 * Double(columns.count) + 16 * Double(index)
            drawing.text(note, x: 12, y: y, class: "s")
        }
        svg = drawing.svg
    }

    /// A number of callers in few characters.
    private static func short(_ name: String) -> String {
        name.replacing(/000000$/, with: "M").replacing(/000$/, with: "k")
    }

    /// A logarithmic scale of whole powers of ten.
    private struct Scale {
        private let low: Int, high: Int, start: Double, end: Double

        init(_ values: [Double], from start: Double, to end: Double) {
            low = Int(log10(max(values.min() ?? 1, 0.001)).rounded(.down))
            high = max(Int(log10(max(values.max() ?? 10, 0.01)).rounded(.up)), low + 1)
            (self.start, self.end) = (start, end)
        }

        var marks: [Double] { (low...high).map { pow(10, Double($0)) } }

        func place(of value: Double) -> Double {
            start + (end - start) * (log10(max(value, 0.001)) - Double(low)) / Double(high - low)
        }
    }
}
