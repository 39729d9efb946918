import AccessTokensDiscovery
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import Testing

/// What MCP servers have published, as public reports quote it, in `Tests/Support/MCPServers.json`: a row each of
/// `Docs/MCPServers.md`.
struct MCPServerRow: Decodable, Sendable, CustomTestStringConvertible {
    struct Document: Decodable {
        let status: Int
        let body: String
    }

    let name, url, deviates, set, source, day: String
    let words: [String]
    /// The place of the resource's metadata that a 401 has named.
    let challenge: String?
    let documents: [String: Document]
    /// What the resource's metadata name; `nil`: the report doesn't show them, or they can't be used.
    let resource: String?
    let isResourceRefused, acceptsOrigin, refusesRegistration: Bool?
    /// The authorization server that the resource names.
    let authorizationServer: String?
    /// What the authorization server's metadata name.
    let issuer: String?
    /// The place that must be pinned, with the issuer.
    let metadata: String?

    var testDescription: String { name }
    var place: URL? { metadata.flatMap { URL(string: $0) } }

    static let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }

    static let all = Result {
        let file = root.appending(path: "Tests/Support/MCPServers.json")
        return try JSONDecoder().decode([MCPServerRow].self, from: Data(contentsOf: file))
    }

    /// The page of all rows.
    static func page(_ rows: [MCPServerRow]) -> String {
        let days = rows.map(\.day).sorted()
        var lines = [
            "# MCP servers", "",
            "What \(rows.count) MCP servers, or parts of them, have published about their authorization, and what to set in a client "
                + "like [the guide's](../Sources/AccessTokensDiscovery/AccessTokensDiscovery.docc/AnMCPClient.md). Each was taken "
                + "from a public report of \(days[0]) to \(days[days.count - 1]), whose words are quoted; a server may have changed "
                + "since. A document of which a report shows only some members has only those here.",
            "",
            "[Tests](../Tests/Units/AccessTokensDiscoveryTests/MCPServerTests.swift) read the documents with `ProtectedResource` and "
                + "`AuthorizationServer`, and write this page. To pin an issuer, pass both texts to `discover(_:metadataURL:)`, after "
                + "you have checked with the operator that they belong together.",
            "", "| server | what deviates | what to set | issuer and metadata to pin |", "|---|---|---|---|",
        ]
        for row in rows {
            let pinned = row.metadata.map { "`\(row.issuer ?? "")`, `\($0)`" } ?? "–"
            lines.append("| \(row.name): `\(row.url)` | \(row.deviates) | \(row.set) | \(pinned) |")
        }
        lines += ["", "## Sources", ""]
        for row in rows {
            let words = row.words.map { "“\($0)”" }.joined(separator: ", ")
            lines.append("- \(row.name): <\(row.source)>, of \(row.day): \(words)")
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

struct MCPServerTests {
    @Test(arguments: try MCPServerRow.all.get())
    func `a server's published metadata lead to its issuer, or to an error until the program says more`(
        row: MCPServerRow
    ) async throws {
        let transport = MetadataServer(row.documents.mapValues { TransportResponse($0.status, $0.body) })
        let challenge = row.challenge.flatMap { URL(string: $0) }
        if let expected = row.resource {
            if row.acceptsOrigin == true {
                await #expect(throws: OAuthError.self) {
                    try await ProtectedResource.discover(row.url, metadataURL: challenge, transport: transport)
                }
            }
            let found = try await ProtectedResource.discover(
                row.url, metadataURL: challenge, acceptsOrigin: row.acceptsOrigin ?? false, transport: transport)
            #expect(found.resource == expected && found.authorizationServers.first == row.authorizationServer)
        }
        if row.isResourceRefused == true {
            await #expect(throws: OAuthError.self) {
                try await ProtectedResource.discover(row.url, metadataURL: challenge, acceptsOrigin: true, transport: transport)
            }
        }
        guard let named = row.authorizationServer, let issuer = row.issuer else { return }
        let server: AuthorizationServer
        if let place = row.place {
            let error = await #expect(throws: OAuthError.self) {
                try await AuthorizationServer.discover(named, transport: transport)
            }
            #expect(error?.code == .invalidMetadata)
            server = try await AuthorizationServer.discover(issuer, metadataURL: place, transport: transport)
        } else {
            server = try await AuthorizationServer.discover(named, transport: transport)
        }
        #expect(server.issuer == issuer)
        if row.refusesRegistration == true {
            let error = await #expect(throws: OAuthError.self) {
                try await server.register(ClientMetadata(name: "a", redirectURIs: ["app:/in"]), transport: transport)
            }
            #expect(error?.code == .refused && error?.status == 403 && error?.refusesClient == false)
        }
    }

    @Test func `the page is made from the rows`() throws {
        let url = MCPServerRow.root.appending(path: "Docs/MCPServers.md"), page = MCPServerRow.page(try MCPServerRow.all.get())
        if ProcessInfo.processInfo.environment["PROVIDERS_PAGE"] == "renew" {
            try page.write(to: url, atomically: true, encoding: .utf8)
        }
        let written = try? String(contentsOf: url, encoding: .utf8)
        #expect(written == page, "PROVIDERS_PAGE=renew swift test --filter MCPServerTests writes it anew")
    }
}
