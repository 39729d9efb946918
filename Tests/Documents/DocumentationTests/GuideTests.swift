import Foundation
import TestBudgets
import Testing

@Suite("The guides tell the truth", .inRealTime)
struct GuideTests {
    private static let root = LinkTests.root

    /// Returns a page's Swift blocks: the modules that they import for the whole page, and the other lines block by block, with
    /// the modules that only that block imports.
    private static func code(of page: String) throws -> (imports: Set<String>, blocks: [String], own: [Set<String>]) {
        let text = try String(contentsOf: root.appending(path: page), encoding: .utf8)
        var imports: Set<String> = []
        var blocks: [String] = []
        var own: [Set<String>] = []
        for match in text.matches(of: /(?s)```swift\n(.*?)```/) {
            var names: Set<String> = []
            let block = condensed(String(match.1)).components(separatedBy: "\n").filter { line in
                guard let name = line.firstMatch(of: /^import (\w+)/)?.1 else { return true }
                names.insert(String(name))
                return false
            }.joined(separator: "\n")
            if block.isEmpty {
                imports.formUnion(names)
            } else {
                blocks.append(block)
                own.append(names)
            }
        }
        // Without such a block, the code continues the earlier blocks.
        return (imports.isEmpty ? own.reduce([]) { $0.union($1) } : imports, blocks, own)
    }

    /// The code that is compiled beside this file, in the sample, in the recipes, in their tests, and as tests of XCTest, each file
    /// condensed.
    private static func examples() throws -> [String] {
        let folders = [
            "Tests/Documents", "Docs/Recipes/Sources", "Docs/Recipes/Tests/RecipesTests", "Tests/Units/InterleavingsTestingTests",
        ]
        return try folders.flatMap(sources).map {
            condensed(try String(contentsOf: $0, encoding: .utf8))
        }
    }

    private static func sources(in folder: String) -> [URL] {
        let files = FileManager.default.enumerator(at: root.appending(path: folder), includingPropertiesForKeys: nil)
        return (files?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "swift" }
    }

    /// Lines without their indentation and blank ones.
    private static func condensed(_ text: String) -> String {
        text.components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
            .joined(separator: "\n")
    }

    @Test(arguments: LinkTests.catalogPages)
    func `every Swift block is code that compiles`(page: String) throws {
        let examples = try Self.examples()
        for block in try Self.code(of: page).blocks {
            #expect(examples.contains { $0.contains(block) }, "in no file of Tests/Documents or Docs/Recipes:\n\(block)")
        }
    }

    /// Pages whose samples are the articles' own lines.
    private static let wide = ["FromTheArticles.md", "MigratingFromCallbacks.md"]
    private static let narrow = LinkTests.catalogPages.filter { page in
        !page.contains("/Interleavings") && !wide.contains { page.hasSuffix($0) }
    }

    @Test(arguments: narrow)
    func `no line of a sample is wider than its column`(page: String) throws {
        let text = try String(contentsOf: Self.root.appending(path: page), encoding: .utf8)
        // A sample may have a fence in its comments.
        for block in text.matches(of: /(?ms)^```swift\n(.*?)^```$/) {
            // What fits a page of DocC in a window of 1,280 pixels: 703 pixels, of which 28 are its edges, and 9.03 a character.
            for line in block.1.split(separator: "\n") { #expect(line.count <= 74, "\(line)") }
        }
    }

    @Test(arguments: RecipePage.all)
    func `a page has the whole text of each recipe`(page: RecipePage) throws {
        let text = try page.text()
        if ProcessInfo.processInfo.environment["RECIPE_PAGES"] == "renew" {
            try text.write(to: page.url, atomically: true, encoding: .utf8)
        }
        let written = try? String(contentsOf: page.url, encoding: .utf8)
        #expect(written == text, "RECIPE_PAGES=renew swift test --filter GuideTests writes it anew")
    }

    @Test func `each recipe has a page`() throws {
        #expect(try RecipePage.targets() == Set(RecipePage.all.map(\.target)))
    }

    /// The names that show which module a code block needs: the public declarations of our modules, and a few of the other ones.
    private static let names = Result { try readNames() }

    private static func readNames() throws -> [String: [String]] {
        var names = [
            "AsyncHTTPClient": ["HTTPClient", "HTTPClientRequest", "HTTPClientResponse"], "Dispatch": ["DispatchQueue"],
            "Foundation": ["URL", "Data", "URLSession", "URLRequest", "JSONDecoder"],
            "CHiredis": ["redisCommandArgv"], "CPostgreSQL": ["PQconnectdb"], "GRDB": ["DatabaseQueue"],
            "Hummingbird": ["Router", "HTTPError"], "Logging": ["Logger"],
            "NIOCore": ["ByteBuffer", "NIODeadline", "TimeAmount"],
            "ServiceLifecycle": ["gracefulShutdown"], "Tracing": ["withSpan"],
            "InterleavingsTesting": ["exploring"], "Synchronization": ["Mutex"], "Testing": ["#expect", "@Test", "@Suite"],
        ]
        let manifest = try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8)
        for product in manifest.matches(of: /\.library\(name: "(\w+)"/).map({ String($0.1) }) + ["AccessTokensHTTP"] {
            let files = FileManager.default.enumerator(
                at: root.appending(path: "Sources/\(product)"), includingPropertiesForKeys: nil)
            for case let file as URL in files ?? .init() where file.pathExtension == "swift" {
                let source = try String(contentsOf: file, encoding: .utf8)
                let declarations = source.matches(
                    of: /(?m)^(?:@\w+ )*public (?:final )?(?:nonisolated )?(?:class|struct|actor|enum|protocol|func) (\w+)/)
                names[product, default: []] += declarations.map { String($0.1) }
            }
        }
        return names
    }

    /// The recipes' pages are left out, since they have whole files.
    @Test(arguments: Set(LinkTests.catalogPages).subtracting(RecipePage.all.map(\.path)).sorted())
    func `a page shows each import that its code needs`(page: String) throws {
        let (imports, blocks, own) = try Self.code(of: page)
        for (block, own) in zip(blocks, own) {
            let words = Set(block.matches(of: /([@#]?)(\w+)/).flatMap { ["\($0.1)\($0.2)", "\($0.2)"] })
            for (module, names) in try Self.names.get() where !imports.union(own).contains(module) {
                let used = names.filter(words.contains)
                #expect(used.isEmpty, "\(used.sorted()) need “import \(module)”")
            }
        }
    }

    @Test func `a name belongs to the module that declares it`() throws {
        let names = try Self.names.get()
        #expect(names["AccessTokens"]?.contains("TokenService") == true)
        #expect(names["DataLoading"]?.contains("DataLoader") == true)
        #expect(names["Interleavings"]?.contains("explore") == true)
    }
}
