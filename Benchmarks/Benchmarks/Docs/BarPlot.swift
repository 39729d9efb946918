import Foundation

/// One bar for each row, as long as its median; a thin line shows the quartiles.
struct BarPlot {
    let svg: String

    init(_ table: Table, column: String, title: String, axis: String, notes: [String]) {
        let bars = table.rows.compactMap { row in row.cells.first { $0.column == column }.map { (row.name, $0) } }
        let longest = bars.map(\.1.value.high).max() ?? 1
        let bottom = 48 + 42 * Double(bars.count)
        var drawing = Drawing(height: bottom + 34 + 16 * Double(notes.count))
        drawing.text(title, x: 12, y: 24, class: "h")
        for (index, (name, cell)) in bars.enumerated() {
            let y = 40 + 42 * Double(index)
            func x(_ value: Double) -> Double { 12 + 330 * value / longest }
            drawing.text(name, x: 12, y: y + 13)
            drawing.bar(
                x: 12, y: y + 18, width: max(x(cell.value.median) - 12, 1), height: 16,
                colour: Drawing.colours[index == 0 ? 0 : 2])
            drawing.line(x1: x(cell.value.low), y1: y + 26, x2: x(cell.value.high), y2: y + 26, class: "q")
            drawing.text(cell.text, x: max(x(cell.value.high), 13) + 8, y: y + 30, class: "s")
        }
        drawing.text(axis, x: 12, y: bottom + 16, class: "a")
        for (index, note) in notes.enumerated() {
            drawing.text(note, x: 12, y: bottom + 34 + 16 * Double(index), class: "s")
        }
        svg = drawing.svg
    }
}
