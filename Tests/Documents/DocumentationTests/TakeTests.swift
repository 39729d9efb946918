import Foundation
import Insides
import TestBudgets
import Testing

/// `Docs/Recipes/take`, in folders whose names have blanks.
@Suite("Recipes are copied by a script", .inRealTime)
struct TakeTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "take \(UUID())")
    /// The recipes, as a clone of their own has them.
    private var recipes: URL { folder.appending(path: "a clone/Docs/Recipes") }
    private var package: URL { folder.appending(path: "My App") }

    /// Runs `body` with a copy of the recipes that is a repository, and an empty package.
    private func inFolder(_ body: () async throws -> Void) async throws {
        let files = FileManager.default
        try files.createDirectory(at: recipes, withIntermediateDirectories: true)
        try files.createDirectory(at: package, withIntermediateDirectories: true)
        defer { try? files.removeItem(at: folder) }
        for name in ["Sources", "Tests", "Package.swift", "take"] {
            // The links of tests lead out of the folder.
            _ = try await run(
                URL(filePath: "/bin/cp"), ["-RL", LinkTests.root.appending(path: "Docs/Recipes/\(name)").path, recipes.path])
        }
        try await commit()
        try await body()
    }

    private func commit() async throws {
        let script = """
            cd "$0" && git init -q . && git add -A && git -c user.name=n -c user.email=n@example.com commit -qm files
            """
        #expect(try await run(URL(filePath: "/bin/bash"), ["-c", script, recipes.path]).status == 0)
    }

    private func take(_ arguments: String...) async throws -> (status: Int32, output: String) {
        try await run(recipes.appending(path: "take"), arguments + ["--to", package.path])
    }

    private func text(_ path: String, in folder: URL? = nil) throws -> String {
        try String(contentsOf: (folder ?? package).appending(path: path), encoding: .utf8)
    }

    private func write(_ text: String, to path: String, in folder: URL? = nil) throws {
        let file = (folder ?? package).appending(path: path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try text.write(to: file, atomically: true, encoding: .utf8)
    }

    @Test func `a package gets each recipe's files, and is told what the recipe's page says that its manifest needs`()
        async throws
    {
        try await inFolder {
            try write("// swift-tools-version: 6.2\n", to: "Package.swift")
            try write("", to: "Sources/app/main.swift")
            for page in RecipePage.all where page.target != "AsATool" {
                let taken = try await take(page.target)
                #expect(taken.status == 0)
                let lines = try #require(try page.text().firstMatch(of: /(?s)besides this package:\n\n```\n(.*?)```/)?.1)
                #expect(taken.output.contains(lines), "\(page): \(taken.output)")
                let sources = recipes.appending(path: "Sources/\(page.target)")
                for file in try FileManager.default.contentsOfDirectory(atPath: sources.path) {
                    #expect(try text("Sources/app/Recipes/\(file)") == text(file, in: sources))
                }
            }
            let tests = try FileManager.default.contentsOfDirectory(atPath: package.path + "/Tests/appTests/Recipes")
            for file in tests {
                let imports = try text("Tests/appTests/Recipes/\(file)").matches(of: /@testable import (\w+)/)
                #expect(imports.allSatisfy { $0.1 == "app" })
            }
            #expect(tests.count > 10)
            let tool = try await take("AsATool")
            #expect(tool.status == 64 && tool.output.contains("can't be in one target"))
            #expect(try text("Package.swift") == "// swift-tools-version: 6.2\n")
            #expect(try await take("--update").output == "nothing has changed\n")
        }
    }

    @Test func `an empty folder becomes a package`() async throws {
        try await inFolder {
            #expect(try await take("InValkey", "WithTracing").status == 0)
            let manifest = try text("Package.swift")
            for line in [#"name: "MyApp""#, #""CHiredis","#, "swift-distributed-tracing", #".product(name: "InMemoryTracing""#] {
                #expect(manifest.contains(line), "\(line) is missing")
            }
        }
    }

    @Test func `what has changed since is shown, and then taken, except into a file that its owner has changed`() async throws {
        let (log, more) = ("Sources/MyApp/Recipes/TokenEvent+Logging.swift", "Sources/MyApp/Recipes/TokenServices+Logging.swift")
        try await inFolder {
            #expect(try await take("ToSwiftLog").status == 0)
            try write("// mine\n" + text(log), to: log)
            for file in ["TokenEvent+Logging.swift", "TokenServices+Logging.swift"] {
                let path = "Sources/ToSwiftLog/\(file)"
                try write(text(path, in: recipes) + "// a later line\n", to: path, in: recipes)
            }
            try write("// new\n", to: "Sources/ToSwiftLog/More.swift", in: recipes)
            try await commit()
            let before = try text(more)
            let update = try await take("--update")
            #expect(update.status == 1 && update.output.matches(of: /\+\/\/ a later line/).count == 2)
            #expect(update.output.contains("you have changed it") && !update.output.contains("-// mine"))
            #expect(update.output.contains("new since, taken with ToSwiftLog: Sources/MyApp/Recipes/More.swift"))
            #expect(try text(more) == before)

            let again = try await take("ToSwiftLog")
            #expect(again.status == 1 && again.output.contains("kept, since you have changed it: \(log)"))
            #expect(try text(more) == before + "// a later line\n")
            #expect(try text(log).hasPrefix("// mine\n") && !text(log).contains("// a later line"))

            #expect(try await take("--seen").status == 0)
            #expect(try await take("--update").output == "nothing has changed\n")
            #expect(try await take("ToSwiftLog").status == 0)
            #expect(try text(log).hasPrefix("// mine\n"))
        }
    }

    @Test func `an unknown recipe, or a file that is in the way, copies nothing`() async throws {
        let file = "Sources/MyApp/Recipes/TracedLoader.swift"
        try await inFolder {
            let unknown = try await take("WithTracing", "Nothing")
            #expect(
                unknown.status == 64
                    && unknown.output.contains("there is no recipe Nothing; there are: AsAServer AsATool"))
            try write("// mine\n", to: file)
            let refused = try await take("WithTracing", "ToSwiftLog")
            #expect(refused.status == 64 && refused.output.contains(file))
            #expect(try text(file) == "// mine\n")
            #expect(try FileManager.default.subpathsOfDirectory(atPath: package.path).filter { $0.hasSuffix(".swift") } == [file])
        }
    }
}
