import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

// The page “Installation”: its program compiles, and its products are those of the manifest.

private func firstToken() async {
    guard let tokenURL = URL(string: "https://id.example/token") else {
        exit(1)
    }
    let secret = ProcessInfo.processInfo.environment["CLIENT_SECRET"] ?? ""
    do {
        let tokens = TokenService(
            loader: try ClientCredentialsLoader(
                tokenURL: tokenURL, clientID: "reports",
                clientSecret: secret))
        let token = try await tokens.retrieveToken()
        print("a token for", token.lifetime ?? .zero)
    } catch {
        print("no token: \(error)")
        exit(1)
    }
}

@Suite(.inRealTime) struct `The page about installation` {
    private func text(_ path: String) throws -> String {
        try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
    }

    private func products() throws -> [String] {
        try text("Package.swift").matches(of: /\.library\(name: "(\w+)"/).map { String($0.1) }
    }

    @Test func `names every module that a user can import in its table, and no other`() throws {
        let page = try text("Sources/AccessTokens/AccessTokens.docc/Installation.md")
        let table = try #require(page.firstMatch(of: /(?s)\| you want \|.*?\n\n/)).0
        // The one module that is no product comes with some of them.
        let products = Set(try products() + ["AccessTokensHTTP"])
        #expect(Set(table.matches(of: /`(\w+)`/).map { String($0.1) }) == products)
        let example = page.matches(of: /\.product\(name: "(\w+)", package: "TokenService"\)/).map { String($0.1) }
        #expect(!example.isEmpty && products.isSuperset(of: example))
    }

    @Test func `names the systems and the tools of the manifest`() throws {
        let page = try text("Sources/AccessTokens/AccessTokens.docc/Installation.md")
        let manifest = try text("Package.swift")
        let tools = try #require(manifest.firstMatch(of: /swift-tools-version: ([\d.]+)/)).1
        #expect(page.contains("Swift \(tools) tools"))
        let systems = manifest.matches(of: /\.(macOS|iOS|tvOS|watchOS|visionOS)\(\.v(\d+)\)/)
        #expect(systems.count == 5)
        for system in systems {
            let row = page.components(separatedBy: "\n").first { $0.hasPrefix("|") && $0.contains(system.1) }
            #expect(row?.hasSuffix("| \(system.2) |") == true, "\(system.1)")
        }
    }

    @Test func `lists the manifest's oldest tools among the tested ones, each with a stage that tests it`() throws {
        let page = try text("Sources/AccessTokens/AccessTokens.docc/Installation.md")
        let tools = try #require(try text("Package.swift").firstMatch(of: /swift-tools-version: ([\d.]+)/)).1
        let rows = page.matches(of: #/(?m)^\| ([\d.]+) \|.*\| `([a-z0-9]+)` \|$/#)
        #expect(rows.count == 3 && rows.contains { $0.1.hasPrefix(tools + ".") })
        for row in rows { #expect(try text(".ci/run").contains(" record \(row.2) "), "\(row.2)") }
    }

    @Test func `the core's page names every product`() throws {
        let page = try text("Sources/AccessTokens/AccessTokens.docc/AccessTokens.md")
        for product in try products() { #expect(page.contains("`\(product)`"), "\(product)") }
    }
}
