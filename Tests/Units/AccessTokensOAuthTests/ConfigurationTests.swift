import AccessTokens
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

@Suite(.inRealTime)
struct ConfigurationTests {
    func create(
        _ url: String = "https://as.example/token", id: String = "me", secret: String = "hush",
        adding parameters: Form = [:]
    ) throws {
        _ = try ClientCredentialsLoader(
            OAuthClient(id: id, authentication: .clientSecretBasic(secret), tokenURL: #require(URL(string: url))),
            additionalParameters: parameters)
    }

    func problem(_ body: () throws -> Void) throws -> String {
        let failure = try #require(throws: OAuthError.self) { try body() }
        #expect(failure.code == .invalidConfiguration)
        #expect(failure.remedy == .clientRegistration)
        #expect(!"\(failure)".contains("hush"))
        return "\(failure)"
    }

    // RFC 6749 §3.2: TLS except on the loopback interface; no fragment. RFC 9700 §4.9: no credentials in the URL.
    @Test(arguments: [
        ("http://as.example/token", "https"), ("http://127.0.0.1.example/token", "https"), ("http://127.1/token", "https"),
        ("http://0127.0.0.1/token", "https"), ("http://127.0.0.01/token", "https"), ("http://+127.0.0.1/token", "https"),
        ("http://localhost.example/token", "https"), ("http://128.0.0.1/token", "https"), ("http://[::2]/token", "https"),
        ("ftp://as.example/token", "https"), ("file:///token", "host"), ("token", "host"), ("https:///token", "host"),
        ("https://as.example/token#part", "fragment"), ("https://as.example/token#", "fragment"),
        ("https://user@as.example/token", "user"), ("https://user:hush@as.example/token", "user"),
        ("https://as.example/token?client_secret=hush", "query"), ("https://as.example/token?a=1&grant_type=x", "query"),
        ("https://as.example/token?client%5Fid=x", "query"),
    ])
    func `a token URL that endangers the credentials is refused`(url: String, reason: String) throws {
        #expect(try problem { try create(url) }.contains(reason))
    }

    @Test(arguments: [
        "https://as.example/token", "HTTPS://AS.EXAMPLE:8443", "http://localhost:80/token", "http://LOCALHOST/token",
        "http://127.0.0.1:1/token", "http://127.255.255.254/token", "http://[::1]:8080/token", "https://as.example/token?p=1",
    ])
    func `TLS anywhere, and plain HTTP to the loopback interface, are accepted`(url: String) throws {
        try create(url)
    }

    @Test func `a client without id or secret is refused`() throws {
        #expect(try problem { try create(id: "") }.contains("id is empty"))
        #expect(try problem { try create(secret: "") }.contains("secret is empty"))
    }

    // RFC 6749 App. A.2. Editors, spreadsheets, `echo` and a selection with the mouse add them.
    @Test(arguments: [
        ("hush\n", "a line break at position 5"), ("hush\r\n", "a line break at position 5"),
        ("hu\u{2028}sh", "a line break at position 3"), ("hush ", "a blank at position 5"), (" hush", "a blank at position 1"),
        ("hush\t", "a tab at position 5"), ("hush\u{A0}", "a blank at position 5"), ("hush\0", "a NUL at position 5"),
        ("hu\0sh", "a NUL at position 3"), ("hush\u{FEFF}", "a byte order mark at position 5"),
        ("\u{FEFF}hush", "a byte order mark at position 1"), ("hush\u{200B}", "an invisible character at position 5"),
        ("hush  ", "a blank at position 5"), ("hush \0", "a blank at position 5"), (" ", "a blank at position 1"),
    ])
    func `a secret with a character that only looks like nothing is refused early, with its position`(
        secret: String, problem: String
    ) async throws {
        let closures: [ClientAuthentication] = [
            .clientSecretBasic { secret }, .clientSecretPost { secret }, .assertion { secret }, .assertion { _, _ in secret },
        ]
        #expect(try self.problem { try create(secret: secret) }.contains("the client secret has \(problem)"))
        let url = try #require(URL(string: "https://as.example/token")), transport = ScriptedTransport { .token() }
        #expect(
            try self.problem {
                _ = try OAuthClient(id: "me", authentication: .clientSecretPost(secret), tokenURL: url)
            }.contains("the client secret has \(problem)"))
        for authentication in closures {
            let client = try OAuthClient(
                id: "me", authentication: authentication, tokenURL: url, issuer: "https://as.example", transport: transport)
            let failure = try await ClientCredentialsLoader(client).failure()
            #expect(failure.code == .credentialsUnavailable && "\(failure)".contains("has \(problem)"), "\(failure)")
            #expect(!texts(failure).contains("hush"))
        }
        #expect(transport.requests.isEmpty)
    }

    @Test(arguments: ["a b", "a\tb\u{200d}c", "ü", "s3cr3t+/: ü", "-", "\u{1F511}"])
    func `a secret may have any other character`(secret: String) throws {
        try create(secret: secret)
    }

    // RFC 6749 App. A.1 allows printable ASCII.
    @Test(arguments: ["\u{7}", "\n", "\u{1B}[31m", "\0", "\u{202E}", "\u{FEFF}", "\u{2028}"])
    func `no text shows a control character of the client's id, a parameter's name or a host`(control: String) async throws {
        let id = "me\(control)you", url = try #require(URL(string: "https://as.example/token"))
        func clean(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
            #expect(
                !text.unicodeScalars.contains { control.unicodeScalars.first == $0 }, "\(text)", sourceLocation: sourceLocation)
        }
        for status in [400, 401, 403, 503] {
            for secret in [nil, "hush-hush"] {
                let client = try OAuthClient(
                    id: id, authentication: secret.map { .clientSecretPost($0) } ?? .publicClient, tokenURL: url,
                    transport: ScriptedTransport { TransportResponse(status, #"{"error":"invalid_client"}"#) })
                let failure = try await #require(throws: OAuthError.self) { try await client.token(for: .refreshToken("r")) }
                clean("\(failure) \(failure.localizedDescription) \(client)")
                if status == 401 { #expect("\(failure)".contains("you"), "\(failure)") }
                clean("\(try SignInRequest(client, authorizationURL: url)) \(try RefreshTokenLoader(client))")
                clean("\(GrantLoader(client, isRepeatable: false) { _ in .refreshToken("r") })")
            }
        }
        for form in [["scope\(control)": "x", "scope\(control)": "y"], ["a\(control)": ""]] as [Form] {
            clean(try problem { try create(adding: form) })
        }
    }

    // RFC 6749 §3.2, §2.3.1; RFC 7009 §2: the same rules for every endpoint.
    @Test(arguments: [
        ("http://as.example/e", "https"), ("https://as.example/e#", "fragment"), ("https://me:hush@as.example/e", "user"),
        ("https://as.example/e?refresh_token=hush", "query"), ("https://as.example/e?token=hush", "query"),
    ])
    func `a URL that endangers the credentials is refused for refreshing and revoking, too`(text: String, reason: String)
        async throws
    {
        let url = try #require(URL(string: text))
        #expect(try problem { _ = try RefreshTokenLoader(tokenURL: url, clientID: "me") }.contains(reason))
        let client = try OAuthClient(id: "me", tokenURL: #require(URL(string: "https://as.example/token")))
        let error = try await #require(throws: OAuthError.self) { try await client.revoke(AccessToken("a"), at: url) }
        #expect(error.code == .invalidConfiguration && !"\(error)".contains("hush") && "\(error)".contains(reason))
    }

    @Test(arguments: ["refresh_token", "scope", "client_secret"])
    func `an additional parameter of a refresh cannot replace one of the loader's`(name: String) throws {
        let url = try #require(URL(string: "https://as.example/token"))
        let reason = try problem {
            _ = try RefreshTokenLoader(OAuthClient(id: "me", tokenURL: url), additionalParameters: [name: "hush"])
        }
        #expect(reason.contains("'\(name)'"))
    }

    // RFC 6749 §4.4: for confidential clients only.
    @Test func `client credentials are refused for a public client`() throws {
        let reason = try problem {
            let url = try #require(URL(string: "https://as.example/token"))
            _ = try ClientCredentialsLoader(OAuthClient(id: "me", tokenURL: url))
        }
        #expect(reason.contains("public client"))
    }

    // RFC 6749 §3.2: nothing repeated, nothing empty.
    @Test(arguments: ["grant_type", "scope", "client_id", "client_secret", "client_assertion", "refresh_token", "password"])
    func `an additional parameter cannot replace one of the loader's`(name: String) throws {
        #expect(try problem { try create(adding: [name: "hush"]) }.contains("'\(name)'"))
    }

    @Test(arguments: [["audience": ""], ["": "api"]] as [Form])
    func `an additional parameter needs a name and a value`(parameters: Form) throws {
        #expect(try problem { try create(adding: parameters) }.contains("additional parameter"))
    }

    // RFC 6749 §3.2; RFC 8707 §2 and RFC 8693 §2.1 for the two that may.
    @Test func `only a resource and an audience may come twice`() throws {
        try create(adding: ["resource": "https://a", "resource": "https://b", "audience": "c", "audience": "d"])
        #expect(try problem { try create(adding: ["policy": "a", "policy": "b"]) }.contains("'policy' is repeated"))
    }

    @Test func `a loader doesn't repeat an additional parameter of its client`() throws {
        let url = try #require(URL(string: "https://as.example/token"))
        let client = try OAuthClient(
            id: "me", authentication: .clientSecretBasic("hush"), tokenURL: url,
            additionalParameters: ["tenant": "a", "resource": "https://a"])
        _ = try ClientCredentialsLoader(client, additionalParameters: ["resource": "https://b"])
        for create in [
            { _ = try ClientCredentialsLoader(client, additionalParameters: ["tenant": "b"]) },
            { _ = try RefreshTokenLoader(client, additionalParameters: ["tenant": "b"]) },
        ] {
            #expect(try problem { try create() }.contains("'tenant' is repeated"))
        }
    }

    @Test func `an additional parameter must not be in the URL's query too`() throws {
        #expect(try problem { try create("https://as.example/token?p=1", adding: ["p": "2"]) }.contains("query"))
    }
}
