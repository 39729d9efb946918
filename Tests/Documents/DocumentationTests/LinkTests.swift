import Foundation
import TestBudgets
import Testing

@Suite("The links of the documents", .inRealTime)
struct LinkTests {
    static let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }

    /// Every Markdown page of the repository, by its path in the package.
    static let pages: [String] = {
        let folders = [".github", "Benchmarks", "Docs", "Sources", "Tests"].flatMap { folder in
            let files = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
            return (files?.compactMap { $0 as? String } ?? []).map { folder + "/" + $0 }
        }
        return ["CHANGELOG.md", "README.md"] + folders.filter { $0.hasSuffix(".md") && !$0.contains("/.build/") }.sorted()
    }()

    /// The pages of documentation catalogs.
    static let catalogPages = pages.filter { $0.contains(".docc/") }

    /// The possible targets of links in each page of `pages`.
    private static let anchors: [String: Set<String>] = Dictionary(
        uniqueKeysWithValues: pages.map { page in
            let text = try? String(contentsOf: root.appending(path: page), encoding: .utf8)
            return (root.appending(path: page).path, MarkdownPage(text: text ?? "").anchors)
        })

    /// The problem of a link on a page; `nil`: none.
    static func problem(of link: String, on page: String) throws -> String? {
        let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let path = String(parts[0]).removingPercentEncoding ?? String(parts[0])
        let source = root.appending(path: page)
        let target = path.isEmpty ? source : source.deletingLastPathComponent().appending(path: path).standardizedFileURL
        guard FileManager.default.fileExists(atPath: target.path) else { return "leads to no file" }
        guard target.path == root.path || target.path.hasPrefix(root.path + "/") else { return "leaves the repository" }
        guard parts.count == 2 else { return nil }
        if let anchors = anchors[target.path] { return anchors.contains(String(parts[1])) ? nil : "leads to no heading" }
        let text = try String(contentsOf: target, encoding: .utf8)
        guard let line = parts[1].firstMatch(of: /^L(\d+)$/).flatMap({ Int($0.1) }) else { return "leads to no line" }
        return line <= text.components(separatedBy: "\n").count ? nil : "leads past the end of the file"
    }

    @Test(arguments: pages)
    func `every relative link leads to a file, and its anchor to a heading there`(page: String) throws {
        let text = try String(contentsOf: Self.root.appending(path: page), encoding: .utf8)
        for link in MarkdownPage(text: text).relativeLinks {
            let problem = try Self.problem(of: link, on: page)
            #expect(problem == nil, "\(page): \(link) \(problem ?? "")")
        }
    }

    /// The name in DocC of a link to a file of the repository; `nil`: only GitHub has the file.
    private static func documentationLink(of link: String, on page: String) -> String? {
        let parts = link.split(separator: "#", maxSplits: 1).map(String.init)
        let target = root.appending(path: page).deletingLastPathComponent().appending(path: parts[0]).standardizedFileURL
        let name = target.deletingPathExtension().lastPathComponent
        let catalog = target.deletingLastPathComponent().deletingPathExtension().lastPathComponent
        // The build writes the museum's page into the core's catalog, with its diagrams.
        let module = target.path.hasSuffix("/Docs/Museum.md") ? "AccessTokens" : catalog
        guard target.path.contains(".docc/") || module != catalog else { return nil }
        // A module that extends the core's types has a page with the core's name, where DocC looks up every linked symbol.
        if module == "AccessTokens", page.contains("/AccessTokensSharing.docc/") { return nil }
        let isHere = page.contains("/\(module).docc/")
        let path = isHere ? name : name == module ? "/\(module)" : "/\(module)/\(name)"
        return "doc:\(path)" + (parts.count == 2 ? "#" + parts[1] : "")
    }

    /// Where GitHub has a file of the repository.
    private static func gitHubLink(of link: String, on page: String) -> String {
        let target = root.appending(path: page).deletingLastPathComponent().appending(path: link).standardizedFileURL
        return "https://github.com/OWNER/TokenService/blob/main" + target.path.dropFirst(root.path.count)
    }

    /// GitHub uses a label's first definition, which is a file; DocC uses the second one, which is a page.
    @Test(arguments: pages)
    func `the first screen of a page's source has no labels of links`(page: String) throws {
        let text = try String(contentsOf: Self.root.appending(path: page), encoding: .utf8)
        let screen = text.split(separator: "\n", maxSplits: 24, omittingEmptySubsequences: false).prefix(24)
        #expect(!screen.contains { $0.hasPrefix("[") && $0.contains("]: ") })
    }

    @Test(arguments: catalogPages)
    func `a catalog's links lead to the same place on GitHub and in DocC`(page: String) throws {
        let markdown = MarkdownPage(text: try String(contentsOf: Self.root.appending(path: page), encoding: .utf8))
        let definitions = markdown.definitions
        let half = definitions.count / 2
        #expect(definitions.prefix(half).map(\.label) == definitions.suffix(half).map(\.label), "two lists of the same labels")
        for (onGitHub, inDocC) in zip(definitions.prefix(half), definitions.suffix(half)) {
            let expected =
                Self.documentationLink(of: onGitHub.target, on: page) ?? Self.gitHubLink(of: onGitHub.target, on: page)
            #expect(inDocC.target.lowercased() == expected.lowercased(), "[\(onGitHub.label)]")
        }
        #expect(markdown.labels == Set(definitions.map(\.label)), "each label is defined, and each definition used")
        #expect(!markdown.text.contains("<doc:"), "GitHub shows it as dead text")
        let parts = markdown.text.components(separatedBy: "@Comment {")
        #expect(parts.count < 2 || parts[0].contains("\n## "), "they don't fill the first screen of the page's source")
    }

    @Test(
        arguments: [
            ("Design.md", nil), ("Design.md#design", nil), ("#design", nil), ("../README.md", nil), ("../Sources", nil),
            ("../Package.swift#L1", nil), ("Desing.md", "leads to no file"), ("Design.md#nothing", "leads to no heading"),
            ("../Package.swift#L99999", "leads past the end of the file"), ("../Package.swift#x", "leads to no line"),
            ("../../", "leaves the repository"),
        ] as [(String, String?)])
    func `a broken link is told from a good one`(link: String, problem: String?) throws {
        #expect(try Self.problem(of: link, on: "Docs/Design.md") == problem)
    }

    @Test func `links are found everywhere in Markdown, but not in code`() {
        let page = MarkdownPage(
            text: """
                # One heading: `code`, [a link](target.md)!
                A [label][one], and [code`s`][two words].
                ## Same
                ## Same
                [![a picture](inner.svg)](outer.md "title") and `[code](span.md)`, [web](https://example.com/x)
                <picture><source srcset="dark.svg"><img src="light.svg"></picture> <a id="mine"></a>
                [reference]: reference.md
                [page]: doc:Page
                ```swift
                # no heading
                [block](block.md)
                ```
                """)
        let links = ["target.md", "inner.svg", "outer.md", "light.svg", "dark.svg", "reference.md"]
        #expect(page.relativeLinks.sorted() == links.sorted())
        #expect(page.labels == ["one", "two words"])
        #expect(page.definitions.map(\.label) == ["reference", "page"])
        #expect(page.anchors == ["one-heading-code-a-link", "same", "same-1", "mine"])
    }

    @Test func `the list of pages isn't empty`() {
        #expect(Self.pages.count >= 30 && Self.catalogPages.count >= 20)
    }
}
