import Foundation

/// One line for each column, along the rows, on a logarithmic scale; its name stands at its end.
struct LinePlot {
    let svg: String

    init(_ table: Table, columns: [String], title: String) {
        var drawing = Drawing(width: 790, height: 380)
        drawing.text(title, x: 10, y: 22, class: "h")
        let values = table.rows.flatMap(\.cells).filter { columns.contains($0.column) }.map(\.value.median)
        let bottom = Int(log10(max(values.min() ?? 1, 0.001)).rounded(.down))
        let top = max(Int(log10(max(values.max() ?? 10, 0.01)).rounded(.up)), bottom + 1)
        func x(_ row: Int) -> Double { 70 + 510 * Double(row) / Double(max(table.rows.count - 1, 1)) }
        func y(_ value: Double) -> Double {
            335 - 290 * (log10(max(value, 0.001)) - Double(bottom)) / Double(top - bottom)
        }
        for power in bottom...top {
            let value = pow(10, Double(power))
            drawing.line(x1: 70, y1: y(value), x2: 580, y2: y(value), class: "g")
            drawing.text(value < 1 ? "\(value)" : Int(value).formatted(.number), x: 62, y: y(value) + 4, anchor: .end, class: "s")
        }
        for (index, row) in table.rows.enumerated() {
            let name = Int(row.name).map { $0.formatted(.number) } ?? row.name
            drawing.text(name, x: x(index), y: 358, anchor: .middle, class: "s")
        }
        var names: [(y: Double, name: String, colour: String)] = []
        for (index, column) in columns.enumerated() {
            let points = table.rows.enumerated().compactMap { number, row in
                row.cells.first { $0.column == column }.map { (x: x(number), y: y($0.value.median)) }
            }
            guard let last = points.last else { continue }
            drawing.path(points, colour: Drawing.colours[index])
            names.append((last.y + 4, column, Drawing.colours[index]))
        }
        // In the order of the lines' ends; a name that would cover another one moves down.
        var free = -Double.infinity
        for (y, name, colour) in names.sorted(by: { $0.y < $1.y }) {
            let place = max(y, free)
            free = place + 17
            drawing.bar(x: 592, y: place - 9, width: 10, height: 10, colour: colour)
            drawing.text(name, x: 607, y: place)
        }
        svg = drawing.svg
    }
}
