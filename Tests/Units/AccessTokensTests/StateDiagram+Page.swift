extension StateDiagram {
    /// The page with the picture, its arrows in words, and every step in a table.
    var page: String {
        """
        <!-- Do not edit: STATE_DIAGRAM=renew swift test --filter StateDiagramTests -->
        # The state machine

        Every step of `TokenService.StateMachine`, found by a
        [walk](../Tests/Units/AccessTokensTests/StateDiagram.swift) over every state of one caller, and drawn from what it found. A
        [test](../Tests/Units/AccessTokensTests/StateDiagramTests.swift) holds this page and the picture to the machine. What the
        states mean stands in [Design](Design.md#the-state-machine).

        ![The five states and the steps between them; the table below says the same in words](StateMachine.svg)

        ## The arrows in words

        Without a store, without the steps that lead back to where they began, and without the fences, which lead from
        everywhere to one place. It begins in `empty`.

        | | from | to | on |
        |---|---|---|---|
        \(zip(1..., arrows).map(line).joined(separator: "\n"))

        \(fences.map { "- " + $0 }.joined(separator: "\n"))

        ## Every step

        A dot: it stays where it is. Blank: it cannot happen there. ¹ loads may be repeated, ² they must not, ³ with a store,
        ⁴ without one.

        | event | \(Place.allCases.map { "`\($0)`" }.joined(separator: " | ")) |
        |---|\(String(repeating: "---|", count: Place.allCases.count))
        \(Happening.allCases.map(row).joined(separator: "\n"))

        \(Happening.allCases.compactMap { event in event.meaning.map { "- *\(event.rawValue)*: \($0)." } }.joined(separator: "\n"))

        """
    }

    private func line(_ number: Int, _ arrow: Arrow) -> String {
        "| \(number) | `\(arrow.from)` | `\(arrow.to)` | \(arrow.events.joined(separator: ", ")) |"
    }

    private func row(_ event: Happening) -> String {
        let cells = Place.allCases.map { place in
            targets(from: place, on: event).map { ($0.place == place ? "·" : $0.place.rawValue) + $0.mark }
                .joined(separator: ", ")
        }
        return "| \(event.rawValue) | \(cells.joined(separator: " | ")) |"
    }

    /// The resulting place of each fence, from any place.
    var fences: [String] {
        Happening.allCases.filter(\.isFence).map { event in
            let places = Place.allCases.flatMap { targets(from: $0, on: event) }.filter { !$0.mark.contains("³") }
            let names = Set(places.map(\.place)).sorted { $0.rawValue > $1.rawValue }.map(\.rawValue)
            return "\(event.rawValue): any → \(names.joined(separator: " or "))"
        }
    }

    typealias Arrow = (from: Place, to: Place, events: [String])

    /// The arrows to draw between two places: for services without a store, without fences, and without steps that stay in a
    /// place.
    var arrows: [Arrow] {
        Place.allCases.flatMap { from in
            Place.allCases.filter { $0 != from }.compactMap { to in
                let events = Happening.allCases.filter { !$0.isFence }.compactMap { event -> String? in
                    guard steps[Step(from: from, event: event, to: to)]?.contains(where: { !$0.hasStore }) == true else {
                        return nil
                    }
                    let mark = targets(from: from, on: event).first { $0.place == to }?.mark ?? ""
                    return event.rawValue + mark.filter { $0 != "⁴" }
                }
                return events.isEmpty ? nil : (from, to, events)
            }
        }
    }
}
