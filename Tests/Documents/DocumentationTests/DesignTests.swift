import Foundation
import TestBudgets
import Testing

@Suite("The design document", .inRealTime)
struct DesignTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
    }

    /// The modules that other packages or only our own import, without executables and the gallery.
    private func modules() throws -> [String] {
        let products = try text("Package.swift").matches(of: /\.library\(name: "(\w+)"/).map { String($0.1) }
        return products + ["TokenServiceConcurrency", "AccessTokensHTTP"]
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

    @Test func `every import of one of the package's modules follows an arrow of the manifest`() throws {
        let modules = try modules(), arrows = try manifestArrows()
        #expect(arrows.count > 5)
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

    @Test func `shared modules don't depend on tokens, and DataLoading doesn't depend on OAuth`() throws {
        let arrows = try manifestArrows()
        #expect(!arrows.contains { $0.hasPrefix("TokenServiceConcurrency -->") })
        #expect(arrows.filter { $0.hasPrefix("AccessTokensHTTP -->") } == ["AccessTokensHTTP --> TokenServiceConcurrency"])
        #expect(arrows.filter { $0.hasPrefix("Interleavings -->") } == ["Interleavings --> TokenServiceConcurrency"])
        #expect(!arrows.contains("DataLoading --> AccessTokensOAuth"))
    }

    @Test func `products are libraries, and no program links a module from Tests`() throws {
        let manifest = try text("Package.swift")
        #expect(!manifest.contains(".executable(name:"))
        // The migration guide's app is compiled like one; only tests link it.
        let supports = ["ChildProcesses", "Insides", "TestBudgets"]
        let modules = manifest.matches(of: /\.target\(\s*name: "(\w+)"[^)]*?path: "Tests\//).map { String($0.1) }
        #expect(modules.allSatisfy { $0.hasPrefix("Migration") || $0 == "UntouchedCode" || supports.contains($0) })
        let programs = manifest.components(separatedBy: "\n        .").filter { $0.hasPrefix("executableTarget") }
        #expect(
            programs.count >= 6
                && !programs.contains { $0.contains("\"Migration") || $0.contains("\"TestBudgets") || $0.contains("\"Insides") })
    }

    @Test func `every module and executable has a row in the design document`() throws {
        let lines = try text("Docs/Design.md").components(separatedBy: "\n")
        let folders = try FileManager.default.contentsOfDirectory(atPath: LinkTests.root.appending(path: "Sources").path)
        let named = lines.compactMap { $0.firstMatch(of: #/^\| `([A-Za-z-]+)/` \|/#).map { String($0.1) } }
        #expect(Set(named) == Set(folders))
    }

    /// A list of modules outside the manifest, and what it may lack.
    @Test(arguments: [
        (".spi.yml", #"- (\w+)"#, ""),
        (".ci/docs", #"\b([A-Z]\w+)"#, ""),
        // Each of these is measured with what it brings; the explorer and the test kit are in no program.
        (".ci/size", #"\b([A-Z]\w+)"#, "AccessTokensTesting Interleavings InterleavingsTesting InterleavingsEverything"),
        // The program of a reader links no testing library, and imports no module that comes with others.
        (".ci/consumer", #"\b([A-Z]\w+)"#, "InterleavingsTesting InterleavingsEverything AccessTokensHTTP"),
        (".ci/mutants", #"\b([A-Z]\w+)"#, ""),
        ("CHANGELOG.md", #"`([A-Z]\w+)`"#, ""),
        ("Docs/Design.md", #"(?m)^\| `(\w+)/`"#, ""),
    ])
    func `a list of modules contains all of the manifest's`(page: String, pattern: String, without: String) throws {
        let named = Set(
            try text(page).matches(of: try Regex(pattern, as: (Substring, Substring).self)).map { String($0.output.1) })
        let expected = Set(try modules()).subtracting(["TokenServiceConcurrency"]),
            absent = Set(without.split(separator: " ").map(String.init))
        #expect(absent.isSubset(of: expected))
        #expect(expected.subtracting(named) == absent.subtracting(named))
        #expect(expected.subtracting(absent).isSubset(of: named))
    }

    @Test func `the page has 3,500 words at most`() throws {
        let words = try text("Docs/Design.md").split(whereSeparator: \.isWhitespace).count
        #expect(words <= 3_500, "a decision belongs on its room's page in Docs/Decisions")
    }

    @Test func `each row of the design document links to a page of decisions, and each page is linked`() throws {
        let rooms = try text("Docs/Design.md").matches(of: /(?m)^\| `[A-Za-z-]+\/` \|.*\| (.*) \|$/).map { String($0.1) }
        #expect(!rooms.isEmpty && rooms.allSatisfy { $0.contains("](Decisions/") })
        let folder = LinkTests.root.appending(path: "Docs/Decisions").path
        let pages = try FileManager.default.contentsOfDirectory(atPath: folder)
        let page = try text("Docs/Design.md")
        for name in pages { #expect(page.contains("](Decisions/\(name)"), "\(name)") }
        #expect(pages.count == 10)
    }

    @Test func `each decision has its reason and its rejected alternatives, under a heading of its page`() throws {
        let folder = LinkTests.root.appending(path: "Docs/Decisions").path
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            let page = try text("Docs/Decisions/\(name)")
            let lines = page.components(separatedBy: "\n")
            #expect(lines.count { $0.hasPrefix("## ") } >= 1, "\(name)")
            let decisions = page.matches(of: /(?m)^\| decision \|.*\n\|-.*\n((?:\|.*\n?)*)/).flatMap {
                $0.1.split(separator: "\n")
            }
            let numbers = decisions.compactMap { $0.firstMatch(of: #/^\| (\d+)\. /#).map { String($0.1) } }
            #expect(!numbers.isEmpty && numbers.count == decisions.count && Set(numbers).count == numbers.count, "\(name)")
            for line in lines where line.hasPrefix("| ") {
                let cells = line.dropFirst(2).dropLast(2).components(separatedBy: " | ")
                #expect(cells.count == 3 && cells.allSatisfy { !$0.isEmpty }, "\(name): \(line)")
            }
        }
    }
}
