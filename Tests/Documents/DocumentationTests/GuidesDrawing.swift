/// A picture for the guides, as SVG in the colours of a light or a dark page.
struct GuidesDrawing {
    /// Whether the page behind the picture is light or dark.
    enum Appearance: String, CaseIterable {
        case light = ""
        case dark = "~dark"
    }

    /// The meaning of a part of the drawing; each has a colour in both appearances.
    enum Ink: String {
        case text, note, line, grid, fresh, either, refresh, leeway, attempt

        func color(_ appearance: Appearance) -> String {
            switch (self, appearance) {
            case (.text, .light): "#1d1d1f"
            case (.text, .dark): "#f5f5f7"
            case (.note, .light): "#55555a"
            case (.note, .dark): "#b4b4ba"
            case (.line, .light): "#8e8e93"
            case (.line, .dark): "#8e8e93"
            case (.grid, .light): "#e3e3e8"
            case (.grid, .dark): "#3a3a3e"
            case (.fresh, .light): "#c9e7d0"
            case (.fresh, .dark): "#1f5435"
            case (.either, .light): "#e6e4ab"
            case (.either, .dark): "#565417"
            case (.refresh, .light): "#fcdfa6"
            case (.refresh, .dark): "#6b4e12"
            case (.leeway, .light): "#f6c3ba"
            case (.leeway, .dark): "#6d2f26"
            case (.attempt, .light): "#a3341f"
            case (.attempt, .dark): "#ff9d8a"
            }
        }
    }

    enum Anchor: String {
        case start, middle, end
    }

    let width = 520.0
    let height: Double
    let title: String
    private let appearance: Appearance
    private var elements: [String] = []

    init(_ title: String, height: Double, appearance: Appearance) {
        self.title = title
        self.height = height
        self.appearance = appearance
    }

    mutating func box(_ ink: Ink, from start: Double, to end: Double, y: Double, height: Double = 30) {
        elements.append(
            #"<rect x="\#(place(start))" y="\#(place(y))" width="\#(place(end - start))" height="\#(place(height))" "#
                + #"fill="\#(ink.color(appearance))"/>"#)
    }

    mutating func tick(_ ink: Ink, x: Double, from top: Double, to bottom: Double, width: Double = 1) {
        elements.append(
            #"<line x1="\#(place(x))" y1="\#(place(top))" x2="\#(place(x))" y2="\#(place(bottom))" "#
                + #"stroke="\#(ink.color(appearance))" stroke-width="\#(place(width))"/>"#)
    }

    mutating func dot(_ ink: Ink, x: Double, y: Double) {
        elements.append(#"<circle cx="\#(place(x))" cy="\#(place(y))" r="4" fill="\#(ink.color(appearance))"/>"#)
    }

    mutating func text(_ ink: Ink, _ text: String, x: Double, y: Double, _ anchor: Anchor = .start, isBold: Bool = false) {
        elements.append(
            #"<text x="\#(place(x))" y="\#(place(y))" text-anchor="\#(anchor.rawValue)" "#
                + #"fill="\#(ink.color(appearance))"\#(isBold ? #" font-weight="600""# : "")>\#(text)</text>"#)
    }

    /// The picture's own background: GitHub shows the light one on dark pages, and a reader of DocC may choose another page than
    /// the system's.
    private var paper: String {
        let color = appearance == .light ? "white" : "#161618"
        return #"<rect width="100%" height="100%" rx="6" fill="\#(color)"/>"#
    }

    /// The whole picture.
    var svg: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(place(width)) \(place(height))" \
        width="\(place(width))" height="\(place(height))" role="img" font-family="system-ui, sans-serif" font-size="13">
        <title>\(title)</title>
        \(paper)
        \(elements.joined(separator: "\n"))
        </svg>

        """
    }

    /// A coordinate with one decimal, the same text on every machine.
    private func place(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        return tenths.isMultiple(of: 10) ? "\(tenths / 10)" : "\(tenths / 10).\(abs(tenths % 10))"
    }
}
