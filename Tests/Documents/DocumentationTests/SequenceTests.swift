import Foundation
import Testing

/// The sequence diagrams of the design document are drawn from the text below each of them.
///
/// After a change of a text, `SEQUENCES=renew swift test --filter SequenceTests` draws the pictures again.
@Suite("The sequence diagrams")
struct SequenceTests {
    @Test func `each sequence diagram shows the text below it`() throws {
        let docs = LinkTests.root.appending(path: "Docs")
        let page = try String(contentsOf: docs.appending(path: "Design.md"), encoding: .utf8)
        let diagrams = page.matches(of: /\]\((sequence-[a-z0-9-]+\.svg)\)\n\n<details>.*\n\n```text\n((?:[^`]|\n)*)```/)
        #expect(diagrams.count == page.ranges(of: "](sequence-").count && diagrams.count > 3)
        for diagram in diagrams {
            let picture = try #require(SequenceDrawing(String(diagram.2)), "\(diagram.1)").svg
            let file = docs.appending(path: String(diagram.1))
            if ProcessInfo.processInfo.environment["SEQUENCES"] == "renew" {
                try picture.write(to: file, atomically: true, encoding: .utf8)
            }
            let isCurrent = try String(contentsOf: file, encoding: .utf8) == picture
            #expect(isCurrent, "\(diagram.1): SEQUENCES=renew swift test --filter SequenceTests")
        }
    }

    @Test func `no document contains a Mermaid diagram, which only some pages would draw`() throws {
        for file in try #require(FileManager.default.enumerator(at: LinkTests.root, includingPropertiesForKeys: nil)) {
            guard let file = file as? URL, file.pathExtension == "md", !file.path.contains("/.build/") else { continue }
            let hasMermaid = try String(contentsOf: file, encoding: .utf8).contains("```mermaid")
            #expect(!hasMermaid, "\(file.lastPathComponent)")
        }
    }

    @Test func `a line that is no step between the participants is refused`() {
        #expect(SequenceDrawing("a | b\na → b: asks") != nil)
        for line in ["a → c: asks", "a asks", "c: thinks"] { #expect(SequenceDrawing("a | b\n\(line)") == nil) }
    }

    @Test func `each picture that a dark system changes covers its page, whatever the page's colour`() throws {
        let folder = LinkTests.root.appending(path: "Docs")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".svg") }
        #expect(names.count > 8)
        for name in names {
            let picture = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
            #expect(picture.contains(/<rect class="\w+" width="100%" height="100%"/), "\(name)")
        }
    }
}
