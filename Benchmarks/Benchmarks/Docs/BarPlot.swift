import Foundation

/// One bar for each row, as long as its median; a thin line shows the quartiles.
struct BarPlot {
    let svg: String

    init(_ table: Table, column: String, title: String) {
        let bars = table.rows.compactMap { row in row.cells.first { $0.column == column }.map { (row.name, $0) } }
        let longest = bars.map(\.1.value.high).max() ?? 1
        var drawing = Drawing(width: 760, height: 46 + 30 * Double(bars.count))
        drawing.text(title, x: 10, y: 22, class: "h")
        for (index, (name, cell)) in bars.enumerated() {
            let y = 40 + 30 * Double(index)
            func x(_ value: Double) -> Double { 200 + 400 * value / longest }
            drawing.text(name, x: 190, y: y + 15, anchor: .end)
            drawing.bar(
                x: 200, y: y + 2, width: max(x(cell.value.median) - 200, 1), height: 18,
                colour: Drawing.colours[index == 0 ? 0 : 2])
            drawing.line(x1: x(cell.value.low), y1: y + 11, x2: x(cell.value.high), y2: y + 11, class: "q")
            drawing.text(cell.text, x: max(x(cell.value.high), 201) + 8, y: y + 15, class: "s")
        }
        svg = drawing.svg
    }
}
