import Foundation
import Testing

@Suite("The design document")
struct DesignTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
    }

    /// The arrows between modules that the manifest allows.
    private func manifestArrows() throws -> Set<String> {
        let manifest = try text("Package.swift")
        let products = manifest.matches(of: /\.library\(name: "(\w+)"/).map { String($0.1) }
        return manifest.matches(of: /(?s)\.target\(\s*name: "(\w+)",\s*dependencies: \[(.*?)\]/).reduce(into: []) {
            arrows, target in
            guard products.contains(String(target.1)) else { return }
            for name in target.2.matches(of: /"(\w+)"/) { arrows.insert("\(target.1) --> \(name.1)") }
        }
    }

    @Test func `the arrows between the modules are those of the manifest`() throws {
        let page = try text("Docs/Design.md")
        let drawing = try #require(page.firstMatch(of: /(?s)```mermaid\nflowchart TD\n(.*?)```/))
        let drawn = drawing.1.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(Set(drawn) == (try manifestArrows()))
        #expect(drawn.count > 5)
    }

    @Test func `every module and executable stands in the house`() throws {
        let lines = try text("Docs/Design.md").components(separatedBy: "\n")
        let folders = try FileManager.default.contentsOfDirectory(atPath: LinkTests.root.appending(path: "Sources").path)
        let named = lines.compactMap { $0.firstMatch(of: #/^  ([A-Za-z-]+)/ /#).map { String($0.1) } }
        #expect(Set(named) == Set(folders))
    }

    @Test func `each of the nineteen guarantees names tests that are there`() throws {
        let rows = try text("Docs/Design.md").matches(of: /(?m)^\| (\d+) \| (.*)$/)
        #expect(rows.map { String($0.1) } == (1...19).map(String.init))
        for row in rows {
            let links = row.2.matches(of: /\[“([^”]+)”\]\(\.\.\/(Tests\/[^)]+\.swift)\)/)
            #expect(!links.isEmpty, "guarantee \(row.1) names no test")
            for link in links {
                let source = try text(String(link.2))
                let isThere = source.contains("\"\(link.1)\"") || source.contains("func `\(link.1)`")
                #expect(isThere, "guarantee \(row.1): “\(link.1)” is not in \(link.2)")
            }
        }
    }
}
