/// A sequence diagram as SVG: the lifelines to the left, what happens to the right, so that a phone shows it, too.
///
/// Its text has the names of the participants, between vertical bars, and then a line for each step: `a → b: text` for a call, `a
/// ⇢ b: text` for an answer or a message that is not awaited, `a: text` for what happens in one place.
struct SequenceDrawing {
    private struct Step {
        let from: Int, to: Int
        let isDashed: Bool
        let text: [String]
    }

    private static let column = 34.0, line = 16.0, left = 18.0, width = 480.0

    private let names: [String]
    private let steps: [Step]

    /// - Returns: `nil` if a line is not a step between participants.
    init?(_ text: String) {
        let lines = text.split(separator: "\n").map(String.init)
        let names = (lines.first ?? "").components(of: " | ")
        var steps: [Step] = []
        for line in lines.dropFirst() {
            guard let colon = line.firstRange(of: ": ") else { return nil }
            let place = String(line[..<colon.lowerBound]), isDashed = place.contains(" ⇢ ")
            let ends = place.components(of: isDashed ? " ⇢ " : " → ").map { names.firstIndex(of: $0) }
            guard let from = ends.first ?? nil, let to = ends.last ?? nil else { return nil }
            steps.append(Step(from: from, to: to, isDashed: isDashed, text: Self.wrapped(String(line[colon.upperBound...]))))
        }
        (self.names, self.steps) = (names, steps)
    }

    private static func wrapped(_ text: String) -> [String] {
        text.split(separator: " ").reduce(into: [""]) { lines, word in
            let last = lines[lines.count - 1]
            if last.isEmpty {
                lines[lines.count - 1] = String(word)
            } else if last.count + word.count < 44 {
                lines[lines.count - 1] += " \(word)"
            } else {
                lines.append(String(word))
            }
        }
    }

    var svg: String {
        var y = Self.line * Double(names.count) + 22
        var parts: [String] = []
        let textStart = x(names.count - 1) + 20
        for step in steps {
            parts.append(mark(of: step, at: y - 4))
            for line in step.text {
                parts.append(#"<text x="\#(Int(textStart))" y="\#(Int(y))">\#(line.escaped)</text>"#)
                y += Self.line
            }
            y += 8
        }
        let height = Int(y + 2)
        let lifelines = names.enumerated().map { index, name in
            let top = 18 + Self.line * Double(index)
            return """
                <text class="n" x="\(Int(x(index) - 6))" y="\(Int(top))">\(name.escaped)</text>
                <line class="l" x1="\(Int(x(index)))" y1="\(Int(top + 5))" x2="\(Int(x(index)))" y2="\(height - 8)"/>
                """
        }
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(Self.width)) \(height)" width="\(Int(Self.width))" \
            height="\(height)" role="img">
            <style>
            text { font: 13px system-ui, sans-serif; fill: #1f2328 } .n { font-weight: 600 } .b { fill: #ffffff }
            .l { stroke: #d1d9e0 } .a { stroke: #59636e; stroke-width: 1.5 } .d { stroke-dasharray: 4 3 } .h { fill: #59636e }
            .p { fill: #0969da }
            @media (prefers-color-scheme: dark) {
            text { fill: #f0f6fc } .b { fill: #0d1117 } .l { stroke: #3d444d } .a { stroke: #9198a1 } .h { fill: #9198a1 }
            .p { fill: #4493f8 }
            }
            </style>
            <rect class="b" width="100%" height="100%" rx="6"/>
            \((lifelines + parts).joined(separator: "\n"))
            </svg>

            """
    }

    private func x(_ index: Int) -> Double { Self.left + Self.column * Double(index) }

    /// An arrow with its head, or a point.
    private func mark(of step: Step, at y: Double) -> String {
        let (start, end) = (Int(x(step.from)), Int(x(step.to))), y = Int(y)
        guard start != end else { return #"<circle class="p" cx="\#(start)" cy="\#(y)" r="4"/>"# }
        let back = start < end ? -8 : 8
        return #"<line class="a\#(step.isDashed ? " d" : "")" x1="\#(start)" y1="\#(y)" x2="\#(end + back / 2)" y2="\#(y)"/>"#
            + #"<path class="h" d="M\#(end) \#(y)l\#(back) -4v8z"/>"#
    }
}

extension String {
    fileprivate func components(of separator: String) -> [String] { split(separator: separator).map(String.init) }

    fileprivate var escaped: String {
        replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}
