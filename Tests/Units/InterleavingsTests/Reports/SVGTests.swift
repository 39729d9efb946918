import Foundation
import Interleavings
import Testing
#if canImport(FoundationXML)
import FoundationXML
#endif

@Suite struct `A diagram as SVG` {
    static let scenarios: [(String, Granularity, @Sendable (Simulation) async throws -> Void)] = [
        ("", .jobs, naiveCallers), ("1.0.1", .accesses, Races.lostUpdate), ("0.0.1", .accesses, Races.lockOrder),
        ("0.0.1", .jobs, Races.lostWakeUp), ("", .jobs, Races.undoneSignOut), ("", .jobs, Races.overdraft),
        ("", .jobs, Races.sixCallers),
    ]

    @Test(arguments: scenarios.indices)
    func `is well-formed, with every name and the reason`(index: Int) async throws {
        let (schedule, granularity, scenario) = Self.scenarios[index]
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.replay(schedule), granularity: granularity, scenario)
        }
        let svg = try #require(failure).svg
        let document = try #require(ParsedSVG(svg), "\(svg)")
        #expect(document.texts.contains { $0.contains("Schedule 1 (replay) failed. In a ") })
        #expect(document.classes.contains("failure"))
        #expect(document.classes.contains("decisive") == !schedule.isEmpty)
        #expect(document.classes.contains("ruler") == failure?.diagram.contains("── 1 s"))
        #expect(svg.contains("@media (prefers-color-scheme: dark)"))
        #expect(!svg.contains("http://www.w3.org/2000/svg\" href") && !svg.contains("url("))
    }

    @Test func `escapes any name and any text`() throws {
        let evil = "</text><script>alert('1')</script>&amp;\"]]>\u{0}\u{1B}\u{FFFE}\u{8}👩‍👩‍👧"
        var sketch = Sketch([evil, "b"])
        sketch.step(evil, [evil])
        sketch.step("b", [evil], passing: evil)
        let document = try #require(ParsedSVG(sketch.svg), "\(sketch.svg)")
        #expect(!document.elements.contains("script"))
        #expect(document.texts.joined().contains("<script>"))
    }

    @Test func `is well-formed without a trace, and with many tasks`() {
        #expect(ParsedSVG(Sketch([]).svg) != nil)
        let names = (0..<40).map { "task number \($0) of a crowd" }
        var sketch = Sketch(names)
        for name in names { sketch.step(name, [String(repeating: "very long ", count: 500)]) }
        #expect(ParsedSVG(sketch.svg) != nil)
    }
}

/// The contents of an SVG, if it is well-formed.
private final class ParsedSVG: NSObject, XMLParserDelegate {
    private(set) var elements: [String] = []
    private(set) var classes: Set<String> = []
    private(set) var texts: [String] = []

    init?(_ svg: String) {
        super.init()
        let parser = XMLParser(data: Data(svg.utf8))
        parser.delegate = self
        guard parser.parse(), elements.first == "svg" else { return nil }
    }

    func parser(
        _ parser: XMLParser, didStartElement element: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String] = [:]
    ) {
        elements.append(element)
        texts.append("")
        if let kind = attributes["class"] { classes.insert(kind) }
    }

    func parser(_ parser: XMLParser, foundCharacters text: String) {
        if !texts.isEmpty { texts[texts.count - 1] += text }
    }
}
