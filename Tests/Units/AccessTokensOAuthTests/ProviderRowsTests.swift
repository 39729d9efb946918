import AccessTokens
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import Testing

/// What a provider's own documents say, in `Tests/Support/Providers`: one file for each row of `Docs/Providers.md`.
struct ProviderRow: Decodable, Sendable, CustomTestStringConvertible {
    struct Source: Decodable {
        let address: String
        let words: [String]
    }

    /// What a program says to our client; the lifetime in seconds, and 0 for none.
    struct Client: Decodable {
        let lifetimeWhenMissing: Double?
        let acceptedTokenTypes: Set<String>?
    }

    struct Answer: Decodable {
        struct Token: Decodable {
            let value: String
            let lifetime, refreshTokenLifetime: Double?
            let refreshToken, scope: String?
        }

        struct Refusal: Decodable {
            let error, remedy: String
            let words: String?
        }

        let grant: String
        /// `nil`: the document doesn't say.
        let status: Int?
        let body: String
        let token: Token?
        let refusal: Refusal?
    }

    let name, grants, authentication, deviates, set, read: String
    let sources: [Source]
    let client: Client
    let answers: [Answer]

    var testDescription: String { name }

    static let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }

    static let all = Result {
        let folder = root.appending(path: "Tests/Support/Providers")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return try files.filter { $0.pathExtension == "json" }
            .map { try JSONDecoder().decode(ProviderRow.self, from: Data(contentsOf: $0)) }
            .sorted { $0.name.lowercased() < $1.name.lowercased() }
    }

    /// The page of all rows.
    static func page(_ rows: [ProviderRow]) -> String {
        let documents = Set(rows.flatMap(\.sources).map(\.address)).count
        let days = Set(rows.map(\.read)).sorted()
        var lines = [
            "# Providers",
            "",
            "What \(rows.count) providers' own documents say, and what to set. \(documents) documents were read for this page, "
                + "\(days.count == 1 ? "on \(days[0])" : "from \(days[0]) to \(days[days.count - 1])"), in stored copies: a "
                + "provider may have changed since. A provider isn't here unless its document was read, and the words that "
                + "say so are quoted below, without their links.",
            "",
            "[Tests](../Tests/Units/AccessTokensOAuthTests/ProviderRowsTests.swift) send the documented answers through "
                + "`OAuthClient`, from one small file for each row, with shortened tokens; an answer that a document describes "
                + "only in words is written as it says. They write this page from the same files.",
            "",
            "| provider | grants | client authentication | what deviates | what to set |",
            "|---|---|---|---|---|",
        ]
        for row in rows {
            let cells = ["[\(row.name)](#\(row.anchor))", row.grants, row.authentication, row.deviates, row.set]
            lines.append("| \(cells.joined(separator: " | ")) |")
        }
        let anyway = "compare its answers with [what is read anyway](Decisions/OAuth.md#answers)"
        lines += ["", "If yours isn't here, \(anyway). The rest is for the closure `reading:` of `OAuthClient`."]
        for row in rows {
            lines += ["", "## \(row.name)", ""]
            for source in row.sources {
                lines.append("<\(source.address)>, read on \(row.read):")
                lines += [""] + source.words.map { "- “\($0)”" } + [""]
            }
            lines.removeLast()
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// As GitHub makes it from a heading.
    private var anchor: String {
        String(name.lowercased().filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" }).replacing(" ", with: "-")
    }
}

/// Each provider's documented answers, and the page that is made from them.
struct ProviderRowsTests {
    private static let now = Date(timeIntervalSince1970: 1_795_867_200)

    private func grant(_ name: String) throws -> Grant {
        switch name {
        case "code": .authorizationCode("c1", verifier: "v")
        case "refresh": .refreshToken("r1")
        case "client": .clientCredentials()
        case "exchange": .tokenExchange(subject: "s", type: .accessToken)
        case "device": Grant(type: "urn:ietf:params:oauth:grant-type:device_code", ["device_code": "d"])
        case "password": Grant(type: "password", ["username": "u", "password": "p"])
        default: throw CocoaError(.fileReadCorruptFile)
        }
    }

    private func answer(_ answer: ProviderRow.Answer, status: Int, of row: ProviderRow) async throws -> TokenResponse {
        let lifetime = row.client.lifetimeWhenMissing ?? 300
        let client = try OAuthClient(
            id: "me", tokenURL: #require(URL(string: "https://as.example/token")),
            acceptedTokenTypes: row.client.acceptedTokenTypes, lifetimeWhenMissing: lifetime == 0 ? nil : .seconds(lifetime),
            transport: ScriptedTransport { TransportResponse(status, answer.body) }, wallClock: { Self.now })
        return try await client.token(for: grant(answer.grant))
    }

    @Test(arguments: try ProviderRow.all.get()) func `each documented answer is read as its provider means it`(
        row: ProviderRow
    ) async throws {
        #expect(!row.answers.isEmpty && row.sources.allSatisfy { !$0.words.isEmpty })
        for answer in row.answers {
            // Without a documented status, as servers do it: most with 400, some with 200.
            for status in answer.status.map({ [$0] }) ?? [200, 400] {
                if let expected = answer.token {
                    let token = try await self.answer(answer, status: status, of: row).token
                    #expect(token.value == expected.value && token.tokenType == "Bearer", "\(answer.body)")
                    #expect(token.lifetime == expected.lifetime.map { .seconds($0) }.map { min($0, .seconds(315_360_000)) })
                    #expect(token.refreshToken == expected.refreshToken && token.scope == expected.scope, "\(answer.body)")
                    let end = expected.refreshTokenLifetime.map(Self.now.addingTimeInterval)
                    #expect(token.refreshTokenExpiration == end, "\(answer.body)")
                } else {
                    let expected = try #require(answer.refusal)
                    let error = try await #require(throws: OAuthError.self) {
                        try await self.answer(answer, status: status, of: row)
                    }
                    #expect(error.code == .refused && error.error == expected.error, "\(error)")
                    #expect("\(error.remedy)" == expected.remedy && error.serverDescription == expected.words, "\(error)")
                }
            }
        }
    }

    @Test func `the page is made from the rows`() throws {
        let url = ProviderRow.root.appending(path: "Docs/Providers.md")
        let page = ProviderRow.page(try ProviderRow.all.get())
        if ProcessInfo.processInfo.environment["PROVIDERS_PAGE"] == "renew" {
            try page.write(to: url, atomically: true, encoding: .utf8)
        }
        let written = try? String(contentsOf: url, encoding: .utf8)
        #expect(written == page, "PROVIDERS_PAGE=renew swift test --filter ProviderRowsTests writes it anew")
    }

    @Test func `each row says where and when its provider's words were read`() throws {
        let rows = try ProviderRow.all.get()
        #expect(Set(rows.map(\.name)).count == rows.count && rows.count >= 30)
        for row in rows {
            #expect(row.read.wholeMatch(of: /\d{4}-\d\d-\d\d/) != nil && !row.sources.isEmpty, "\(row.name)")
            #expect(row.sources.allSatisfy { URL(string: $0.address)?.scheme == "https" }, "\(row.name)")
        }
    }
}
