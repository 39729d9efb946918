import Foundation

/// A page with the whole text of a recipe, for readers who have the documentation and not the repository.
///
/// `RECIPE_PAGES=renew swift test --filter GuideTests` writes the pages again.
struct RecipePage: CustomStringConvertible {
    private static let folder = LinkTests.root.appending(path: "Docs/Recipes")

    /// The recipe's target; the page has its name.
    let target: String
    let title: String
    /// The guides that explain it, as a page links to them.
    let guides: [Guide]

    struct Guide {
        let title: String, module: String, name: String

        init(_ title: String, _ name: String, of module: String = "AccessTokens") {
            (self.title, self.name, self.module) = (title, name, module)
        }

        private var isNear: Bool { module == "AccessTokens" }
        var onGitHub: String { "[\(name)]: " + (isNear ? "" : "../../\(module)/\(module).docc/") + "\(name).md" }
        var inDocC: String { "[\(name)]: doc:" + (isNear ? "" : "/\(module)/") + name }
    }

    static let all = [
        RecipePage(
            "OverAsyncHTTPClient", "AsyncHTTPClient", Guide("Writing a loader", "WritingALoader"),
            Guide("Reacting to a 401", "ReactingTo401")),
        RecipePage("OverGRPC", "gRPC Swift 2", Guide("Reacting to a 401", "ReactingTo401")),
        RecipePage("InMiddleware", "A middleware of a generated client", Guide("Reacting to a 401", "ReactingTo401")),
        RecipePage("ToSwiftLog", "Events to swift-log", logging),
        RecipePage("ToSwiftMetrics", "Events to swift-metrics", logging),
        RecipePage("WithTracing", "A span for each load", logging),
        RecipePage("WithServiceLifecycle", "A service of a group", Guide("When the program ends", "EndingAProgram")),
        RecipePage(
            "SigningWithCrypto", "Signatures of swift-crypto",
            Guide("Choosing a grant", "ChoosingAGrant", of: "AccessTokensOAuth"),
            Guide("A Bluesky client", "ABlueskyClient", of: "AccessTokensDPoP")),
        RecipePage("AsAServer", "A whole server", Guide("Many accounts, many scopes", "ManyKeys")),
        RecipePage(
            "AsATool", "A command-line tool", Guide("Choosing a grant", "ChoosingAGrant", of: "AccessTokensOAuth"),
            Guide("Several processes", "SeveralProcesses")),
        RecipePage("BehindHummingbird", "A server with many tenants", Guide("Many accounts, many scopes", "ManyKeys")),
        RecipePage("ThroughABroker", "A process that refreshes for others", Guide("One process refreshes for all", "ABroker")),
        RecipePage("InSQLite", "A shared grant in SQLite", engines),
        RecipePage("InPostgreSQL", "A shared grant in PostgreSQL", engines),
        RecipePage("InValkey", "A shared grant in Valkey or Redis", engines),
    ]
    private static let logging = Guide("Logging and metrics", "LoggingAndMetrics")
    private static let engines = Guide("Other engines for a shared grant", "OtherEngines")

    private init(_ target: String, _ title: String, _ guides: Guide...) {
        (self.target, self.title, self.guides) = (target, title, guides)
    }

    var description: String { target }
    /// The page's path in the package.
    var path: String { "Sources/AccessTokens/AccessTokens.docc/\(target).md" }
    var url: URL { LinkTests.root.appending(path: path) }

    /// The targets that readers copy; the others are a tool, and names of libraries.
    static func targets() throws -> Set<String> {
        Set(try files(in: "")).subtracting(["transports", "CHiredis", "CPostgreSQL"])
    }

    private static func files(in target: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "Sources/\(target)").path).sorted()
    }

    private static func listed(_ lines: [String], as name: String) -> String {
        lines.isEmpty ? "" : (["// \(name)"] + lines).map { $0 + "\n" }.joined()
    }

    /// The text that the page must have.
    func text() throws -> String {
        let manifest = try String(contentsOf: Self.folder.appending(path: "Package.swift"), encoding: .utf8)
        let entry = manifest.components(separatedBy: "name: \"\(target)\"")[1].components(separatedBy: "arget(")[0]
        let libraries = entry.matches(of: /(?:\[|\s)"(C[A-Z]\w+)", product/).map { String($0.1) }
        let products = entry.matches(of: /product\("(\w+)"(?:, of: "([\w.-]+)")?\)/).map {
            (name: $0.1, package: $0.2 ?? "TokenService")
        }
        let lines = manifest.components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        let needed = lines.filter { line in
            products.contains { line.hasPrefix(".package(url:") && line.contains("/\($0.package)\"") }
                || libraries.contains { line.hasPrefix(".systemLibrary(name: \"\($0)\"") }
        }
        let packages = needed.filter { $0.hasPrefix(".package") }, targets = needed.filter { !$0.hasPrefix(".package") }
        let dependencies =
            products.map { ".product(name: \"\($0.name)\", package: \"\($0.package)\")," } + libraries.map { "\"\($0)\"," }
        let files =
            try libraries.flatMap { library in
                try Self.files(in: library).map { (path: "\(library)/\($0)", language: "") }
            } + Self.files(in: target).map { (path: "\(target)/\($0)", language: "swift") }
        let blocks = try files.map { file in
            let text = try String(contentsOf: Self.folder.appending(path: "Sources/\(file.path)"), encoding: .utf8)
            let words = file.path.split(separator: "/")
            // A library's files need a folder of their own. A longer heading would make the page wider than a phone.
            let place = file.language.isEmpty ? "In `Sources/\(words[0])`:\n\n" : ""
            return "### \(words[1])\n\n\(place)```\(file.language)\n\(text)```"
        }
        return """
            # \(title)

            A recipe: the whole text of its files, which a script copies into your program.

            ## Overview

            \(guides.map { "[\($0.title)][\($0.name)]" }.joined(separator: " and ")) \(guides.count == 1 ? "explains" : "explain") it. In a clone of this package,

            ```
            Docs/Recipes/take \(target) --to ../MyApp
            ```

            copies its files and prints what your manifest needs besides this package:

            ```
            \(Self.listed(packages, as: "the package's dependencies"))\(Self.listed(targets, as: "the package's targets"))\
            \(Self.listed(dependencies, as: "your target's dependencies"))```

            \(blocks.joined(separator: "\n\n"))

            <!-- Do not edit: RECIPE_PAGES=renew swift test --filter GuideTests
            @Comment {
            -->
            \(guides.map(\.onGitHub).joined(separator: "\n"))
            <!--
            }
            <!-- -->
            \(guides.map(\.inDocC).joined(separator: "\n"))

            """
    }
}
