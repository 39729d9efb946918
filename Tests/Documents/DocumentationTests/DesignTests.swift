import Foundation
import Testing

@Suite("The design document")
struct DesignTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
    }

    /// The modules that other packages or only our own import, without executables and the gallery.
    private func modules() throws -> [String] {
        let products = try text("Package.swift").matches(of: /\.library\(name: "(\w+)"/).map { String($0.1) }
        return products + ["TokenServiceConcurrency", "TokenServiceHTTP"]
    }

    /// The arrows between modules that the manifest allows.
    private func manifestArrows() throws -> Set<String> {
        let manifest = try text("Package.swift")
        let modules = try modules()
        return manifest.matches(of: /(?s)\.target\(\s*name: "(\w+)",\s*dependencies: \[(.*?)\]/).reduce(into: []) {
            arrows, target in
            guard modules.contains(String(target.1)) else { return }
            for name in target.2.matches(of: /"(\w+)"/) { arrows.insert("\(target.1) --> \(name.1)") }
        }
    }

    @Test func `the table of imports between the modules is that of the manifest`() throws {
        let page = try text("Docs/Design.md")
        let table = try #require(page.firstMatch(of: /(?s)\| module \| imports, of ours \|\n(.*?)\n\n/))
        let arrows = table.1.matches(of: /(?m)^\| `(\w+)` \| (.*) \|$/).flatMap { row in
            row.2.matches(of: /`(\w+)`/).map { "\(row.1) --> \($0.1)" }
        }
        #expect(Set(arrows) == (try manifestArrows()))
        #expect(arrows.count > 5)
    }

    @Test func `every import of one of our modules follows an arrow`() throws {
        let modules = try modules(), arrows = try manifestArrows()
        for module in modules {
            let folder = LinkTests.root.appending(path: "Sources/\(module)")
            let files = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
            let sources = files.filter { $0.hasSuffix(".swift") }
            #expect(!sources.isEmpty)
            for file in sources {
                let imports = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
                    .matches(of: /(?m)^(?:@\w+ |public |package )*import (\w+)/).map { String($0.1) }
                for name in imports where modules.contains(name) {
                    #expect(arrows.contains("\(module) --> \(name)"), "\(module)/\(file) imports \(name)")
                }
            }
        }
    }

    @Test func `shared modules know nothing of tokens, and requests know nothing of OAuth`() throws {
        let arrows = try manifestArrows()
        #expect(!arrows.contains { $0.hasPrefix("TokenServiceConcurrency -->") })
        #expect(arrows.filter { $0.hasPrefix("TokenServiceHTTP -->") } == ["TokenServiceHTTP --> TokenServiceConcurrency"])
        #expect(arrows.filter { $0.hasPrefix("Interleavings -->") } == ["Interleavings --> TokenServiceConcurrency"])
        #expect(!arrows.contains("DataLoading --> AccessTokensOAuth"))
    }

    @Test func `products are libraries, and no program links a module from Tests`() throws {
        let manifest = try text("Package.swift")
        #expect(!manifest.contains(".executable(name:"))
        // The migration guide's app is compiled like one; only tests link it.
        let supports = ["ChildProcesses", "TestBudgets"]
        let modules = manifest.matches(of: /\.target\(\s*name: "(\w+)"[^)]*?path: "Tests\//).map { String($0.1) }
        #expect(modules.allSatisfy { $0.hasPrefix("Migration") || $0 == "UntouchedCode" || supports.contains($0) })
        let programs = manifest.components(separatedBy: "\n        .").filter { $0.hasPrefix("executableTarget") }
        #expect(programs.count >= 6 && !programs.contains { $0.contains("\"Migration") || $0.contains("\"TestBudgets") })
    }

    @Test func `every module and executable stands in the house`() throws {
        let lines = try text("Docs/Design.md").components(separatedBy: "\n")
        let folders = try FileManager.default.contentsOfDirectory(atPath: LinkTests.root.appending(path: "Sources").path)
        let named = lines.compactMap { $0.firstMatch(of: #/^  ([A-Za-z-]+)/ /#).map { String($0.1) } }
        #expect(Set(named) == Set(folders))
    }

    @Test func `the guarantees are numbered, and each names tests that are there`() throws {
        let rows = try text("Docs/Design.md").matches(of: /(?m)^\| (\d+) \| (.*)$/)
        #expect(rows.count >= 42 && rows.map { String($0.1) } == (1...rows.count).map(String.init))
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
