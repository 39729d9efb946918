import Foundation
import Testing

@Suite("The guarantees")
struct GuaranteeTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
    }

    /// The page's sections with a numbered heading: one for each promise.
    private func promises() throws -> [Substring] {
        try text("Docs/Guarantees.md").split(separator: "\n## ").filter { $0.contains(#/^\d+\. /#) }
    }

    private func numbers(_ page: some StringProtocol, _ pattern: Regex<(Substring, Substring)>) -> [Int] {
        String(page).matches(of: pattern).compactMap { Int($0.1) }
    }

    @Test func `the guarantees are numbered, each once, under twelve promises`() throws {
        let promises = try promises()
        #expect(promises.count == 12)
        let numbers = promises.flatMap { self.numbers($0, #/(?m)^\*\*(\d+)\. /#) }
        // A number stays with its guarantee, so some may be missing; the page names them.
        let list = try text("Docs/Guarantees.md").firstMatch(of: /not in\s+use (?:are|is) ([\d, ]+)\./)?.1 ?? ""
        let unused = list.split(separator: ", ").compactMap { Int($0) }
        #expect((numbers + unused).sorted() == Array(1...(numbers.count + unused.count)))
        #expect(try text("Docs/Guarantees.md").contains("the \(numbers.count) guarantees"))
    }

    @Test func `each guarantee names tests that exist`() throws {
        for promise in try promises() {
            let lines = String(promise).matches(of: /(?m)^- (\d+): (.*)$/)
            #expect(lines.compactMap { Int($0.1) } == numbers(promise, #/(?m)^\*\*(\d+)\. /#))
            for line in lines {
                let links = line.2.matches(of: /\[“([^”]+)”\]\(\.\.\/(Tests\/[^)]+\.swift)\)/)
                #expect(!links.isEmpty, "guarantee \(line.1) names no test")
                for link in links {
                    let source = try text(String(link.2))
                    let isThere = source.contains("\"\(link.1)\"") || source.contains("func `\(link.1)`")
                    #expect(isThere, "guarantee \(line.1): “\(link.1)” is not in \(link.2)")
                }
            }
        }
    }
}
