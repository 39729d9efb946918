import Foundation
import Testing

@Suite("The links of the documents")
struct LinkTests {
    static let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }

    /// The pages that GitHub shows, by their paths in the package.
    static let pages: [String] = {
        let docs = FileManager.default.enumerator(atPath: root.appending(path: "Docs").path)
        let names = docs?.compactMap { $0 as? String } ?? []
        let community = [".github/CODE_OF_CONDUCT.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md"]
        return community + ["CHANGELOG.md", "README.md"] + names.filter { $0.hasSuffix(".md") }.map { "Docs/" + $0 }.sorted()
    }()

    /// What is wrong with a link on a page; `nil`: nothing.
    static func problem(of link: String, on page: String) throws -> String? {
        let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let path = String(parts[0]).removingPercentEncoding ?? String(parts[0])
        let source = root.appending(path: page)
        var target = path.isEmpty ? source : source.deletingLastPathComponent().appending(path: path).standardizedFileURL
        if !FileManager.default.fileExists(atPath: target.path) {
            // A documentation catalog finds its pictures by their names alone, wherever in it they are.
            guard let resource = resource(named: path, for: page) else { return "leads to no file" }
            target = resource
        }
        guard target.path == root.path || target.path.hasPrefix(root.path + "/") else { return "leaves the repository" }
        guard parts.count == 2 else { return nil }
        let text = try String(contentsOf: target, encoding: .utf8)
        if target.pathExtension == "md" {
            return MarkdownPage(text: text).anchors.contains(String(parts[1])) ? nil : "leads to no heading"
        }
        guard let line = parts[1].firstMatch(of: /^L(\d+)$/).flatMap({ Int($0.1) }) else { return "leads to no line" }
        return line <= text.components(separatedBy: "\n").count ? nil : "leads past the end of the file"
    }

    private static func resource(named name: String, for page: String) -> URL? {
        guard let end = page.range(of: ".docc/")?.lowerBound else { return nil }
        let catalog = root.appending(path: page[..<end] + ".docc")
        let files = FileManager.default.enumerator(atPath: catalog.path)?.compactMap { $0 as? String } ?? []
        let match = files.first { file in
            let last = URL(filePath: file).lastPathComponent
            return last == name || URL(filePath: last).deletingPathExtension().lastPathComponent == name
        }
        return match.map { catalog.appending(path: $0) }
    }

    @Test(arguments: pages)
    func `every relative link leads to a file, and its anchor to a heading there`(page: String) throws {
        let text = try String(contentsOf: Self.root.appending(path: page), encoding: .utf8)
        for link in MarkdownPage(text: text).relativeLinks {
            let problem = try Self.problem(of: link, on: page)
            #expect(problem == nil, "\(page): \(link) \(problem ?? "")")
        }
    }

    @Test(
        arguments: [
            ("Design.md", nil), ("Design.md#design", nil), ("#design", nil), ("../README.md", nil), ("../Sources", nil),
            ("../Package.swift#L1", nil), ("Desing.md", "leads to no file"), ("Design.md#nothing", "leads to no heading"),
            ("../Package.swift#L99999", "leads past the end of the file"), ("../Package.swift#x", "leads to no line"),
            ("../../", "leaves the repository"),
        ] as [(String, String?)])
    func `a link that leads nowhere is told from one that leads somewhere`(link: String, problem: String?) throws {
        #expect(try Self.problem(of: link, on: "Docs/Design.md") == problem)
    }

    @Test func `links are found wherever Markdown has them, and nowhere in code`() {
        let page = MarkdownPage(
            text: """
                # One heading: `code`, [a link](target.md)!
                ## Same
                ## Same
                [![a picture](inner.svg)](outer.md "title") and `[code](span.md)`, [web](https://example.com/x)
                <picture><source srcset="dark.svg"><img src="light.svg"></picture> <a id="mine"></a>
                [reference]: reference.md
                ```swift
                # no heading
                [block](block.md)
                ```
                """)
        let links = ["target.md", "inner.svg", "outer.md", "light.svg", "dark.svg", "reference.md"]
        #expect(page.relativeLinks.sorted() == links.sorted())
        #expect(page.anchors == ["one-heading-code-a-link", "same", "same-1", "mine"])
    }

    @Test func `there are pages`() {
        #expect(Self.pages.count >= 5)
    }
}
