import Foundation

/// The SVG elements of the plots, readable on light and on dark pages, and on a phone: no wider than they must be.
struct Drawing {
    /// Colours with good contrast on white and black, which colour-blind readers can tell apart too.
    static let colours = ["#3b82f6", "#d97706", "#7c7c8a", "#a855f7", "#0d9488", "#64748b"]

    private var elements: [String] = []
    private let width = 480.0
    private let height: Double

    init(height: Double) {
        self.height = height
    }

    enum Anchor: String { case start, middle, end }

    mutating func text(_ text: String, x: Double, y: Double, anchor: Anchor = .start, class name: String = "t") {
        elements.append(#"<text class="\#(name)" x="\#(r(x))" y="\#(r(y))" text-anchor="\#(anchor)">\#(escaped(text))</text>"#)
    }

    mutating func line(x1: Double, y1: Double, x2: Double, y2: Double, class name: String) {
        elements.append(#"<line class="\#(name)" x1="\#(r(x1))" y1="\#(r(y1))" x2="\#(r(x2))" y2="\#(r(y2))"/>"#)
    }

    mutating func bar(x: Double, y: Double, width: Double, height: Double, colour: String) {
        elements.append(
            #"<rect x="\#(r(x))" y="\#(r(y))" width="\#(r(width))" height="\#(r(height))" rx="2" fill="\#(colour)"/>"#)
    }

    mutating func path(_ points: [(x: Double, y: Double)], colour: String, hasPoints: Bool) {
        let text = points.map { "\(r($0.x)),\(r($0.y))" }.joined(separator: " ")
        elements.append(#"<polyline points="\#(text)" fill="none" stroke="\#(colour)" stroke-width="2"/>"#)
        for point in points where hasPoints {
            elements.append(#"<circle cx="\#(r(point.x))" cy="\#(r(point.y))" r="3" fill="\#(colour)"/>"#)
        }
    }

    var svg: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(r(width)) \(r(height))" width="\(r(width))" height="\(r(height))" \
        role="img">
        <style>
        .t { font: 13px system-ui, sans-serif; fill: #24292f } .h { font: 600 14px system-ui, sans-serif; fill: #24292f }
        .s { font: 11px system-ui, sans-serif; fill: #57606a } .a { font: italic 12px system-ui, sans-serif; fill: #57606a }
        .g { stroke: #d0d7de; stroke-width: 1 } .q { stroke: #24292f; stroke-width: 1.5 } .b { fill: #ffffff }
        @media (prefers-color-scheme: dark) {
        .t, .h { fill: #e6edf3 } .s, .a { fill: #9da7b3 } .g { stroke: #3d444d } .q { stroke: #e6edf3 } .b { fill: #0d1117 }
        }
        </style>
        <rect class="b" width="100%" height="100%" rx="6"/>
        \(elements.joined(separator: "\n"))
        </svg>

        """
    }

    private func r(_ value: Double) -> String { String(format: "%.1f", value) }

    private func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}
