import Foundation
import TestBudgets
import Testing

#if canImport(FoundationXML)
import FoundationXML
#endif

@testable import AccessTokens

private let renewal = ProcessInfo.processInfo.environment["STATE_DIAGRAM"]

/// `Docs/StateMachine.md` and its picture agree with the machine: they are generated from a walk over its states.
///
/// After a change of the machine, `STATE_DIAGRAM=renew swift test --filter StateDiagramTests` writes both again; check them.
@Suite(.enabled(if: isThorough || renewal != nil, "its walks are long: they run in release builds, and with THOROUGH=1"))
struct StateDiagramTests {
    private static let docs = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }.appending(
        path: "Docs")

    @Test func `the page and the picture show the machine's actual transitions`() async throws {
        let diagram = await StateDiagram.walked
        for (name, content) in [("StateMachine.md", diagram.page), ("StateMachine.svg", diagram.picture)] {
            let file = Self.docs.appending(path: name)
            if renewal == "renew" {
                try content.write(to: file, atomically: true, encoding: .utf8)
            }
            let kept = try String(contentsOf: file, encoding: .utf8)
            let difference = content.split(separator: "\n").difference(from: kept.split(separator: "\n"))
            let isCurrent = kept == content
            #expect(
                isCurrent,
                """
                \(name): \(difference.insertions.prefix(3)) in place of \(difference.removals.prefix(3)); if the machine is right: \
                STATE_DIAGRAM=renew swift test --filter StateDiagramTests
                """)
        }
    }

    @Test func `browsers can read the picture`() async {
        let picture = await StateDiagram.walked.picture
        #expect(XMLParser(data: Data(picture.utf8)).parse())
    }

    @Test func `every arrow has a place in the picture`() async {
        for arrow in await StateDiagram.walked.arrows {
            let route = StateDiagram.route(from: arrow.from, to: arrow.to)
            #expect(route != nil, "StateDiagram+Picture.swift has no route from \(arrow.from) to \(arrow.to)")
        }
    }

    @Test func `the walk reaches every state and causes every event`() async {
        let steps = await StateDiagram.walked.steps.keys
        #expect(Set(StateDiagram.Place.allCases).subtracting(steps.map(\.to)).isEmpty)
        #expect(Set(StateDiagram.Happening.allCases).subtracting(steps.map(\.event)).isEmpty)
    }

    @Test func `each step carries the mark of the conditions it depends on`() {
        typealias Kind = StateDiagram.Kind
        var diagram = StateDiagram()
        for isRepeatable in [true, false] {
            for hasStore in [true, false] {
                let kind = Kind(isRepeatable: isRepeatable, hasStore: hasStore)
                diagram.add(StateDiagram.Step(from: .loading, event: .timeOut, to: isRepeatable ? .empty : .stalled), kind)
                diagram.add(StateDiagram.Step(from: .loading, event: .success, to: hasStore ? .loading : .fresh), kind)
                diagram.add(StateDiagram.Step(from: .loading, event: .failure, to: .empty), kind)
            }
        }
        #expect(diagram.targets(from: .loading, on: .timeOut).map { $0.place.rawValue + $0.mark } == ["empty¹", "stalled²"])
        #expect(diagram.targets(from: .loading, on: .success).map { $0.place.rawValue + $0.mark } == ["fresh⁴", "loading³"])
        #expect(diagram.targets(from: .loading, on: .failure).map { $0.place.rawValue + $0.mark } == ["empty"])
    }
}
