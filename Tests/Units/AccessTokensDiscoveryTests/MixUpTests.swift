import AccessTokens
import AccessTokensDiscovery
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import Testing

/// A hostile server that wants the code, the refresh token or the client's secret of an honest one, through each thing that
/// discovery tolerates.
struct MixUpTests {
    static let honest = "https://as.example", evil = "https://evil.example"
    static let place = "/.well-known/oauth-authorization-server"
    static let secrets = ["honest-secret", "honest-code", "honest-refresh"]

    struct Attack: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// What the hostile server answers, and what it makes the honest one's places answer.
        var answers: [String: TransportResponse] = [:]
        /// The issuer that an MCP server names.
        var issuer = MixUpTests.evil
        /// The place that the program has pinned.
        var pinned: String?
        /// Whether the program takes the hostile server for an older one, of which it knows only the origin.
        var isOlder = false
        /// Where the hostile server's page sends the browser on.
        var sendsBrowserToHonest = false
    }

    static func metadata(
        issuer: String, at host: String = evil, authorize: String? = nil
    ) -> TransportResponse {
        TransportResponse(
            #"{"issuer":"\#(issuer)","authorization_endpoint":"\#(authorize ?? host)/authorize","token_endpoint":"\#(host)/token","#
                + #""registration_endpoint":"\#(host)/register","code_challenge_methods_supported":["S256"]}"#)
    }

    static let attacks =
        ["", "/", "//", "/?", "/."].map {
            Attack(
                testDescription: "its metadata name the honest issuer, with '\($0)' at the end",
                answers: [evil + place: metadata(issuer: honest + $0)])
        }
        + ["https://AS.example", "https://as.example:443", "https://as.example@evil.example"].map {
            Attack(testDescription: "an issuer that looks the same: \($0)", answers: [evil + place: metadata(issuer: $0)])
        }
        + [301, 302, 307, 308].map {
            Attack(
                testDescription: "a redirect (\($0)) from the honest server's place to its own document",
                answers: [
                    honest + place: TransportResponse(status: $0, headers: ["Location": evil + place]),
                    honest + "/.well-known/openid-configuration": TransportResponse(
                        status: $0, headers: ["Location": evil + place]),
                    evil + place: metadata(issuer: honest),
                ],
                issuer: honest)
        }
        + [honest, honest + "/"].map {
            Attack(
                testDescription: "its document where the honest server has none at the first place, for \($0)",
                answers: [
                    honest + place: TransportResponse(status: 502),
                    honest + "/.well-known/openid-configuration": metadata(issuer: evil),
                ],
                issuer: $0)
        }
        + [
            Attack(
                testDescription: "its document at the pinned place",
                answers: ["https://pinned.example/as.json": metadata(issuer: evil)], issuer: honest,
                pinned: "https://pinned.example/as.json"),
            Attack(
                testDescription: "a redirect at the pinned place",
                answers: [
                    "https://pinned.example/as.json": TransportResponse(
                        status: 302, headers: ["Location": evil + place]),
                    evil + place: metadata(issuer: honest),
                ],
                issuer: honest, pinned: "https://pinned.example/as.json"),
            Attack(
                testDescription: "the honest server's page behind its own metadata",
                answers: [evil + place: metadata(issuer: evil, authorize: honest)]),
            Attack(
                testDescription: "its page sends the browser on to the honest one",
                answers: [evil + place: metadata(issuer: evil)], sendsBrowserToHonest: true),
            Attack(testDescription: "an older server without metadata", isOlder: true, sendsBrowserToHonest: true),
            Attack(
                testDescription: "an older server whose metadata name the honest issuer",
                answers: [evil + place: metadata(issuer: honest)], isOlder: true),
        ]

    /// Goes the whole way of a program that has met the honest server before, and returns all requests.
    private func requests(under attack: Attack?, honestNamesItself: Bool = true) async throws -> [TransportRequest] {
        var answers = [
            Self.honest + Self.place: Self.metadata(issuer: Self.honest, at: Self.honest),
            Self.honest + "/token": TransportResponse.token(#""refresh_token":"honest-refresh""#),
            // The hostile server gives the honest client's id, so that the honest server's page looks right.
            Self.evil + "/register": TransportResponse(201, #"{"client_id":"app","client_secret":"evil-secret"}"#),
            Self.evil + "/token": TransportResponse.token(#""refresh_token":"evil-refresh""#),
        ]
        answers.merge(attack?.answers ?? [:]) { $1 }
        let transport = MetadataServer(answers)
        try? await run(attack, honestNamesItself, transport)
        return transport.requests
    }

    private func run(_ attack: Attack?, _ honestNamesItself: Bool, _ transport: MetadataServer) async throws {
        let issuer = attack?.issuer ?? Self.honest, evil = try #require(URL(string: "\(Self.evil)/mcp"))
        let server =
            if attack?.isOlder == true {
                try await AuthorizationServer.discover(atOriginOf: evil, transport: transport)
            } else {
                try await AuthorizationServer.discover(
                    issuer, metadataURL: attack?.pinned.flatMap { URL(string: $0) }, transport: transport)
            }
        // Both are kept by issuer.
        let known =
            #"{"id":"app","issuer":"\#(Self.honest)","secret":"honest-secret","authenticationMethod":"client_secret_post"}"#
        let kept = try JSONDecoder().decode(RegisteredClient.self, from: Data(known.utf8))
        let stored = AccessToken("old", refreshToken: "honest-refresh")
        let isKnown = server.issuer == Self.honest
        let registered =
            isKnown
            ? kept
            : try await server.register(ClientMetadata(name: "App", redirectURIs: ["app:/in"]), transport: transport)
        // Whatever the program does wrong, a client of another server's isn't presented.
        if !isKnown { #expect(throws: OAuthError.self) { try server.client(kept, transport: transport) } }
        let client = try server.client(registered, transport: transport)
        if isKnown { _ = try await RefreshTokenLoader(client).loadToken(replacing: stored) }

        let request = try await server.signIn(client, redirectURI: "app:/in", requiresPKCE: attack?.isOlder != true)
        let items = URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
        let state = items.first { $0.name == "state" }?.value ?? ""
        let isHonests = request.url.host() == "as.example" || attack?.sendsBrowserToHonest == true
        let name = isHonests && honestNamesItself ? "&iss=https%3A%2F%2Fas.example" : ""
        let callback = "app:/in?code=\(isHonests ? "honest" : "evil")-code&state=\(state)\(name)"
        _ = try await client.token(for: request.grant(from: #require(URL(string: callback))))
    }

    /// The secrets of the honest server that others than it got.
    private func leaks(in requests: [TransportRequest], atHost isMeant: (String) -> Bool = { $0 != "as.example" }) -> [String] {
        let sent = requests.filter { isMeant($0.url.host() ?? "") }
            .map { "\($0.url) \($0.headers) \(String(decoding: $0.body, as: UTF8.self))" }
        return Self.secrets.filter { secret in sent.contains { $0.contains(secret) } }
    }

    @Test func `an honest server gets what is its own`() async throws {
        let requests = try await requests(under: nil)
        #expect(leaks(in: requests) { $0 == "as.example" } == Self.secrets && leaks(in: requests).isEmpty)
    }

    @Test(arguments: attacks) func `a hostile server gets nothing of an honest one's`(attack: Attack) async throws {
        let requests = try await requests(under: attack)
        #expect(!requests.isEmpty && leaks(in: requests).isEmpty)
    }

    // RFC 9207 §1: why servers should name themselves. The MCP guide says so.
    @Test func `the code of a server that doesn't name itself can reach another`() async throws {
        for attack in Self.attacks {
            let requests = try await requests(under: attack, honestNamesItself: false)
            let isSentOn = attack.sendsBrowserToHonest || attack.testDescription.hasPrefix("the honest server's page")
            #expect(leaks(in: requests) == (isSentOn ? ["honest-code"] : []), "\(attack.testDescription)")
        }
    }
}

extension TransportResponse {
    fileprivate static func token(_ members: String) -> TransportResponse {
        TransportResponse(#"{"access_token":"a","token_type":"Bearer","expires_in":60,\#(members)}"#)
    }
}
