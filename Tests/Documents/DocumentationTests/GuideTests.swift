import Foundation
import Testing

@Suite("The guides tell the truth")
struct GuideTests {
    private static let root = LinkTests.root

    /// The pages of every documentation catalog, by their paths in the package.
    static let pages = ["Sources", "Docs"].flatMap { folder in
        let files = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
        return (files?.compactMap { $0 as? String } ?? []).filter { $0.contains(".docc/") && $0.hasSuffix(".md") }
            .map { folder + "/" + $0 }
    }.sorted()

    /// What is compiled beside this file, each file condensed.
    private static func examples() throws -> [String] {
        let folder = root.appending(path: "Tests/Documents/DocumentationTests")
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "swift" }
            .map { condensed(try String(contentsOf: $0, encoding: .utf8)) }
    }

    /// Lines without their indentation and blank ones.
    private static func condensed(_ text: String) -> String {
        text.components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
            .joined(separator: "\n")
    }

    @Test(arguments: pages)
    func `every Swift block is code that compiles`(page: String) throws {
        let text = try String(contentsOf: Self.root.appending(path: page), encoding: .utf8)
        let examples = try Self.examples()
        for match in text.matches(of: /(?s)```swift\n(.*?)```/) {
            let block = Self.condensed(String(match.1))
            #expect(examples.contains { $0.contains(block) }, "in no file of Tests/Documents/DocumentationTests:\n\(block)")
        }
    }

    @Test func `there are pages`() {
        #expect(Self.pages.count >= 6)
    }
}
