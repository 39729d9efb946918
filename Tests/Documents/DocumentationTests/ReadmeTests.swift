import Foundation
import Testing

@Suite("The README tells the truth")
struct ReadmeTests {
    private static let root = LinkTests.root

    private func lines(of path: String) throws -> [String] {
        try String(contentsOf: Self.root.appending(path: path), encoding: .utf8).components(separatedBy: "\n")
    }

    /// The blocks fenced as Swift, without their indentation and blank lines.
    private func swiftBlocks(of lines: [String]) -> [[String]] {
        var blocks: [[String]] = []
        var current: [String]?
        for line in lines {
            if line == "```swift" {
                current = []
            } else if line == "```", let block = current {
                blocks.append(block)
                current = nil
            } else {
                current?.append(line)
            }
        }
        return blocks.map(condensed)
    }

    private func condensed(_ lines: [String]) -> [String] {
        lines.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    @Test(
        arguments: [
            ("README.md", "ReadmeExamples.swift", 2), ("Sources/Interleavings/README.md", "InterleavingsReadmeExamples.swift", 1),
        ])
    func `every Swift block is code that compiles`(page: String, examples: String, count: Int) throws {
        let file = "Tests/Documents/DocumentationTests/\(examples)"
        let code = condensed(try lines(of: file)).joined(separator: "\n")
        let blocks = swiftBlocks(of: try lines(of: page)).filter { !Self.isManifest($0) }
        #expect(blocks.count == count)
        for block in blocks {
            for line in block where line.hasPrefix("import ") {
                #expect(code.contains(line.prefix { $0 != "/" }.trimmingCharacters(in: .whitespaces) + "\n"))
            }
            // A block may show several declarations that are in different places of the program.
            for part in split(block) {
                #expect(code.contains(part.joined(separator: "\n")), "not in \(examples):\n\(part.joined(separator: "\n"))")
            }
        }
    }

    /// A manifest, or a part of one.
    private static func isManifest(_ block: [String]) -> Bool {
        block.first?.hasPrefix(".package") == true || block.contains("import PackageDescription")
    }

    @Test func `the README names every product of the manifest, and states what has not been tried`() throws {
        let (readme, manifest) = (try lines(of: "README.md"), try lines(of: "Package.swift"))
        let dependencies = readme.filter { $0.contains("dependencies: [\"") }
        let named = dependencies.flatMap { $0.matches(of: /"(\w+)"/).map(\.1) }
        #expect(named == ["AccessTokens", "AccessTokensOAuth", "DataLoading"])
        let text = readme.joined(separator: "\n")
        for line in manifest {
            guard let name = line.firstMatch(of: /\.library\(name: "(\w+)"/)?.1 else { continue }
            #expect(text.contains("`\(name)`"), "\(name) is not named")
        }
        let products = manifest.compactMap { $0.firstMatch(of: /\.library\(name: "(\w+)"/)?.1 }
        #expect(Set(named).isSubset(of: products))
        #expect(text.contains("Not yet built or tested on Apple platforms"))
    }

    /// Returns a block's parts that are in different places of the program: those after a comment that ends with a colon, and a
    /// test's contents.
    private func split(_ block: [String]) -> [[String]] {
        let isTest = block.contains { $0.hasPrefix("@Test ") }
        // The last line is the test's closing brace.
        return block.dropLast(isTest ? 1 : 0).filter { !$0.hasPrefix("import ") }
            .split { $0.hasPrefix("//") && $0.hasSuffix(":") || $0.hasPrefix("@Test ") }.map(Array.init)
    }

    @Test func `every link to a file leads to one, and the README has at most 150 lines`() throws {
        let lines = try lines(of: "README.md")
        #expect(lines.count <= 151, "the last line ends with a line feed")
        let links = lines.flatMap { line in line.matches(of: /\]\(([^)]+)\)/).map { String($0.1) } }
        let files = links.filter { !$0.hasPrefix("http") }.map { String($0.prefix { $0 != "#" }) }
        #expect(files.count > 12)
        for file in files {
            #expect(FileManager.default.fileExists(atPath: Self.root.appending(path: file).path), "\(file) is missing")
        }
    }
}
