extension StateDiagram {
    /// How an arrow is drawn, and where its text is.
    struct Route {
        let path: String
        let x: Int
        let y: Int
        var anchor = "middle"
        /// How many events are side by side on a level arrow; more are put on the next lines.
        var room = 2
    }

    /// Returns the position of an arrow; its events come from the machine.
    static func route(from: Place, to: Place) -> Route? {
        switch (from, to) {
        case (.empty, .loading): Route(path: "M 191 148 H 379", x: 285, y: 138)
        case (.loading, .empty): Route(path: "M 379 176 H 191", x: 285, y: 196)
        case (.loading, .fresh): Route(path: "M 521 162 H 719", x: 620, y: 152)
        case (.empty, .fresh): Route(path: "M 140 134 C 140 72, 770 72, 770 134", x: 455, y: 78, room: 3)
        case (.fresh, .empty): Route(path: "M 810 134 C 810 12, 100 12, 100 134", x: 455, y: 32, room: 3)
        case (.fresh, .refreshing): Route(path: "M 776 190 V 412", x: 766, y: 226, anchor: "end")
        case (.refreshing, .fresh): Route(path: "M 804 412 V 190", x: 814, y: 280, anchor: "start")
        case (.loading, .refreshing): Route(path: "M 500 190 L 744 412", x: 640, y: 300, anchor: "start")
        case (.refreshing, .loading): Route(path: "M 718 420 L 472 190", x: 608, y: 348, anchor: "end")
        case (.loading, .stalled): Route(path: "M 440 190 V 412", x: 432, y: 270, anchor: "end")
        case (.refreshing, .stalled): Route(path: "M 719 440 H 521", x: 620, y: 466)
        case (.refreshing, .empty): Route(path: "M 760 468 V 484 H 96 V 190", x: 270, y: 478)
        case (.stalled, .empty): Route(path: "M 390 412 L 140 190", x: 232, y: 320, anchor: "end")
        case (.stalled, .fresh):
            Route(path: "M 450 468 V 500 Q 450 516 466 516 H 934 Q 950 516 950 500 V 178 Q 950 162 934 162 H 861", x: 700, y: 534)
        default: nil
        }
    }

    private static func box(of place: Place) -> (x: Int, y: Int, meaning: String) {
        switch place {
        case .empty: (120, 162, "no token, no load")
        case .loading: (450, 162, "a load, no token")
        case .fresh: (790, 162, "a token, no load")
        case .refreshing: (790, 440, "a token and a load")
        case .stalled: (450, 440, "a load past its limit")
        }
    }

    /// The picture, which follows the page's light or dark colours.
    var picture: String {
        var lines = Self.head
        for (number, arrow) in zip(1..., arrows) {
            guard let route = Self.route(from: arrow.from, to: arrow.to) else { continue }
            lines.append(#"<path class="arrow" d="\#(route.path)" marker-end="url(#tip)"/>"#)
            let isOneRow = route.anchor == "middle" && arrow.events.count <= route.room
            let rows = isOneRow ? [arrow.events.joined(separator: ", ")] : arrow.events
            let y = isOneRow ? route.y : route.y + 8
            lines.append(#"<text class="number" x="\#(route.x)" y="\#(y)" text-anchor="\#(route.anchor)">\#(number)</text>"#)
            for (row, text) in rows.enumerated() {
                let y = route.y + 18 * row
                lines.append(#"<text class="words" x="\#(route.x)" y="\#(y)" text-anchor="\#(route.anchor)">\#(text)</text>"#)
            }
        }
        for place in Place.allCases {
            let (x, y, meaning) = Self.box(of: place)
            let kind = place == .fresh || place == .refreshing ? "place served" : "place"
            lines.append(#"<rect class="\#(kind)" x="\#(x - 70)" y="\#(y - 27)" width="140" height="54" rx="8"/>"#)
            lines.append(#"<text class="name" x="\#(x)" y="\#(y - 4)" text-anchor="middle">\#(place)</text>"#)
            lines.append(#"<text class="small" x="\#(x)" y="\#(y + 15)" text-anchor="middle">\#(meaning)</text>"#)
        }
        let notes = ["¹ if loads may be repeated, ² if they must not", fences.joined(separator: "; ")]
        for (row, note) in notes.enumerated() {
            lines.append(#"<text class="small" x="50" y="\#(566 + 20 * row)">\#(note)</text>"#)
        }
        return (lines + ["</svg>", ""]).joined(separator: "\n")
    }

    private static let head = [
        #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 600" width="980" height="600" role="img">"#,
        "<!-- Do not edit: StateDiagramTests writes it. -->",
        "<title>The states of TokenService.StateMachine and the steps between them</title>",
        """
        <style>
        text { font: 14px system-ui, sans-serif; fill: #1f2328 } .page { fill: #ffffff }
        .name { font-weight: 600 } .number { display: none } .small { font-size: 12px; fill: #59636e }
        .arrow { fill: none; stroke: #59636e; stroke-width: 1.5 } .tip { fill: #59636e }
        .place { fill: #f6f8fa; stroke: #59636e; stroke-width: 1.5 } .served { fill: #dafbe1; stroke: #1a7f37 }
        @media (prefers-color-scheme: dark) {
          text { fill: #f0f6fc } .page { fill: #0d1117 } .small { fill: #9198a1 } .arrow { stroke: #9198a1 } .tip { fill: #9198a1 }
          .place { fill: #212830; stroke: #9198a1 } .served { fill: #12341d; stroke: #3fb950 }
        }
        /* On a phone the arrows have the numbers of the page's table. */
        @media (max-width: 600px) {
          .words, .small { display: none } .number { display: inline; font-size: 26px }
          .name { font-size: 23px; transform: translateY(12px) }
        }
        </style>
        <rect class="page" width="100%" height="100%" rx="6"/>
        """,
        #"<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">"#,
        #"<path class="tip" d="M 0 1 L 10 5 L 0 9 z"/></marker></defs>"#,
    ]
}
