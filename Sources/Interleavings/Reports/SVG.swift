/// Writes an SVG image, element by element.
struct SVG {
    private var elements: [String] = []

    mutating func add(_ element: String, _ attributes: KeyValuePairs<String, String>, _ content: String? = nil) {
        let attributes = attributes.map { " \($0)=\"\(Self.escape($1))\"" }.joined()
        let ending = content.map { ">\(Self.escape($0))</\(element)>" } ?? "/>"
        elements.append("<\(element)\(attributes)\(ending)")
    }

    mutating func line(_ kind: String, from start: (x: Int, y: Int), to end: (x: Int, y: Int)) {
        add("line", ["class": kind, "x1": "\(start.x)", "y1": "\(start.y)", "x2": "\(end.x)", "y2": "\(end.y)"])
    }

    mutating func box(_ kind: String, x: Int, y: Int, width: Int, height: Int) {
        add(
            "rect",
            ["class": kind, "x": "\(x)", "y": "\(y)", "width": "\(width)", "height": "\(height)", "rx": "\(min(height / 2, 6))"])
    }

    mutating func circle(_ kind: String, x: Int, y: Int, radius: Int) {
        add("circle", ["class": kind, "cx": "\(x)", "cy": "\(y)", "r": "\(radius)"])
    }

    mutating func text(_ text: String, _ kind: String, x: Int, y: Int) {
        add("text", ["class": kind, "x": "\(x)", "y": "\(y)"], text)
    }

    /// Returns the whole image.
    ///
    /// - Parameter title: The description for screen readers.
    func document(width: Int, height: Int, title: String) -> String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width) \(height)" width="\(width)" height="\(height)" role="img">
        <title>\(Self.escape(title))</title>
        <style>
        \(Self.style)
        </style>
        <rect class="page" width="\(width)" height="\(height)"/>
        \(elements.joined(separator: "\n"))
        </svg>

        """
    }

    /// Escapes a text for an element's content or an attribute.
    static func escape(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// Dark on light, or light on dark if the reader prefers that.
    private static let style = """
        text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328 }
        .page { fill: #ffffff }
        .title { font-size: 16px; font-weight: 600 }
        .name { font-weight: 600; text-anchor: middle }
        .action { text-anchor: middle }
        .number { text-anchor: end }
        .number, .small, .gap { font-size: 11px; fill: #59636e }
        .note { font-size: 11px; text-anchor: middle; fill: #bc4c00 }
        .clock { font-size: 12px; font-weight: 600; text-anchor: end; fill: #0969da }
        .life { stroke: #c4ccd4; stroke-width: 2 }
        .ruler { stroke: #0969da; stroke-dasharray: 4 4 }
        .head { fill: #eaeef2 }
        .usual { fill: #f6f8fa; stroke: #8c959f }
        .silence { fill: #8c959f }
        .decisive { fill: #fff3d6; stroke: #bc4c00; stroke-width: 2 }
        .switch { fill: none; stroke: #bc4c00; stroke-width: 2 }
        .passed { fill: #ffffff; stroke: #bc4c00; stroke-width: 2 }
        .failure { fill: #ffebe9; stroke: #cf222e; stroke-width: 2 }
        .cross { fill: none; stroke: #cf222e; stroke-width: 3; stroke-linecap: round }
        @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3 }
        .page { fill: #0d1117 }
        .number, .small, .gap { fill: #9198a1 }
        .note { fill: #f0883e }
        .clock { fill: #58a6ff }
        .life { stroke: #3d444d }
        .ruler { stroke: #58a6ff }
        .head { fill: #262c36 }
        .usual { fill: #151b23; stroke: #656c76 }
        .silence { fill: #9198a1 }
        .decisive { fill: #3a2a05; stroke: #f0883e }
        .switch { stroke: #f0883e }
        .passed { fill: #0d1117; stroke: #f0883e }
        .failure { fill: #3d1214; stroke: #f85149 }
        .cross { stroke: #f85149 }
        }
        """
}
