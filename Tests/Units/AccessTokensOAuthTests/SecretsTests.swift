import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

@Suite(.inRealTime)
struct SecretsTests {
    let previous = AccessToken("old-access-token", refreshToken: "old-refresh-token")

    let echoes = [
        ClientCredentialsLoader.secret, "s3cr3t%2B%2F%3A+%C3%BC", "old-access-token", "old-refresh-token",
        Data("me:s3cr3t%2B%2F%3A+%C3%BC".utf8).base64EncodedString(), "new-access-token", "new-refresh-token",
    ]

    // RFC 9700 §4.9: a token or secret in a log is a leak.
    @Test(arguments: [200, 400, 401, 503])
    func `a secret that the server echoes is hidden`(status: Int) async throws {
        for echo in echoes {
            let answer = TransportResponse(
                status,
                #"{"error":"no \#(echo)","error_description":"Bad '\#(echo)\u0301'!\#(echo)","access_token":"new-access-token","#
                    + #""refresh_token":"new-refresh-token"}"#)
            let failure = try await ClientCredentialsLoader(answer: answer).failure(replacing: previous)
            let everything = texts(failure) + texts(failure.error as Any) + texts(failure.serverDescription as Any)
            #expect(!everything.unicodeScalars.map(String.init).joined().contains(echo))
            #expect(failure.serverDescription?.contains("[hidden]") == true)
        }
    }

    /// The secret `s3cr3t+/: ü` of the client `me`, as servers, frameworks and proxies may write it.
    static let spellings = [
        "s3cr3t%2b%2f%3a%20%c3%bc", "s3cr3t%2B/:%20%C3%BC", "%733cr3t+/: ü", "s3cr3t%252B%252F%253A%2520%25C3%25BC",
        "s3cr3t&#43;&#x2F;&#58; &#252;", "s3cr3t%2B&#x2F;%3A+ü", "s3cr3t&amp;#43;/: ü",
        #"s3cr3t+\\/: \\u00fc"#, "me:s3cr3t+/: ü", "me:s3cr3t%2B%2F%3A%20%C3%BC",
        Data("me:s3cr3t+/: ü".utf8).base64EncodedString(), Data("s3cr3t+/: ü".utf8).base64EncodedString(),
        Data("me:s3cr3t%2B%2F%3A%20%C3%BC".utf8).base64EncodedString(),
        Data("me:s3cr3t+/: ü".utf8).base64EncodedString().replacing("=", with: "%3D"),
        Data("me:s3cr3t+/: ü".utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: ""),
    ]

    @Test(arguments: spellings)
    func `18: a secret is hidden in every spelling`(echo: String) async throws {
        let answer = TransportResponse(400, #"{"error":"e","error_description":"wrong: '\#(echo)', id me"}"#)
        let failure = try await ClientCredentialsLoader(answer: answer).failure()
        let shown = try #require(failure.serverDescription)
        #expect(shown.contains("[hidden]") && shown.hasPrefix("wrong: '") && shown.hasSuffix("', id me"), "\(shown)")
        #expect(!shown.contains("3cr3t") && !shown.contains(echo.prefix(10)), "\(shown)")
    }

    @Test func `text that isn't secret is shown as the server wrote it`() async throws {
        let text = #"50%25 of 100% &amp; a+b %zz &#0; &nosuch; \u12"#
        let answer = TransportResponse(400, #"{"error":"e","error_description":"\#(text.replacing(#"\"#, with: #"\\"#))"}"#)
        #expect(try await ClientCredentialsLoader(answer: answer).failure().serverDescription == text)
    }

    @Test func `a secret at the end of a long text is not cut in two`() async throws {
        for length in 280...310 {
            let padding = String(repeating: "x", count: length)
            let answer = TransportResponse(400, #"{"error":"e","error_description":"\#(padding)old-refresh-token"}"#)
            let failure = try await ClientCredentialsLoader(answer: answer).failure(replacing: previous)
            #expect(failure.serverDescription?.contains("old") == false)
        }
    }

    @Test func `a secret that begins with another one is hidden whole`() async throws {
        let answer = TransportResponse(400, #"{"error":"e","error_description":"old-refresh-token and old"}"#)
        let previous = AccessToken("old", refreshToken: "old-refresh-token")
        let failure = try await ClientCredentialsLoader(answer: answer).failure(replacing: previous)
        #expect(failure.serverDescription == "[hidden] and [hidden]")
    }

    @Test(arguments: [
        ("aaaaab", "aaaaaab-aaaaab", "a[hidden]-[hidden]"), ("ababab", "abababababab", "[hidden][hidden]"),
        ("aaaaaa", "aaaaaaa", "[hidden]a"), ("abcabd", "abcabcabd", "abc[hidden]"), ("x", "", nil), ("longer", "long", "long"),
    ])
    func `a secret is found wherever it starts in a text`(secret: String, text: String, shown: String?) async throws {
        let answer = TransportResponse(400, #"{"error":"e","error_description":"\#(text)"}"#)
        let failure = try await RefreshTokenLoader(answer: answer).failure(replacing: AccessToken(secret, refreshToken: "r!"))
        #expect(failure.serverDescription == shown)
    }

    @Test(arguments: [
        ("a", "Bearer a, token a.", "Bearer [hidden], token [hidden]."), ("Be", "Bearer Be be", "Bearer [hidden] be"),
        ("42", "status 421, code=42&x=1 4242 (42)", "status 421, code=[hidden]&x=1 4242 ([hidden])"),
        ("12345", "a12345 12345_ ä12345 -12345-", "a12345 12345_ ä12345 -[hidden]-"),
        ("ab", "a b a-b %61b &#97;b YWI= YWI", "a b a-b [hidden] [hidden] [hidden] [hidden]"),
        ("a.a", "xa.a.a", "xa.[hidden]"), ("a b", "a+b a%20b ab", "[hidden] [hidden] ab"), (".", "No.", "No."),
        ("ü", "für ü", "für [hidden]"), ("123456", "a1234567", "a[hidden]7"),
    ])
    func `a secret shorter than six characters is hidden only as a word of its own`(
        secret: String, text: String, shown: String
    ) async throws {
        let answer = TransportResponse(400, #"{"error":"e","error_description":"\#(text)"}"#)
        let failure = try await RefreshTokenLoader(answer: answer).failure(replacing: AccessToken(secret, refreshToken: "r!r!r!"))
        #expect(failure.serverDescription == shown)
    }

    /// If each character were compared with the whole secret, this would take minutes.
    @Test func `a text full of a secret's beginnings takes no longer than any other`() async throws {
        let length = Int.everyday(40_000, thorough: 1_000_000)
        let answer = TransportResponse(400, #"{"error":"e","error_description":"\#(String(repeating: "a", count: length))"}"#)
        let token = AccessToken(String(repeating: "a", count: 10_000) + "b", refreshToken: "r!")
        let failure = try await RefreshTokenLoader(answer: answer).failure(replacing: token)
        #expect(failure.serverDescription?.utf8.count == 303)
    }

    @Test func `a secret with invisible characters is hidden`() async throws {
        let url = try #require(URL(string: "https://as.example/token"))
        let answer = TransportResponse(401, #"{"error":"e","error_description":"no a\tb\u200dc"}"#)
        let loader = try ClientCredentialsLoader(
            tokenURL: url, clientID: "me", clientSecret: "a\tb\u{200d}c", transport: ScriptedTransport { answer })
        #expect(try await loader.failure().serverDescription == "no [hidden]")
    }

    @Test func `a secret in a token type, a content type or a transport's error is hidden`() async throws {
        let type = TransportResponse(#"{"access_token":"new-access-token","token_type":"new-access-token"}"#)
        #expect(try await !texts(ClientCredentialsLoader(answer: type).failure()).contains("new-access"))
        let content = TransportResponse(200, "", headers: ["Content-Type": ClientCredentialsLoader.secret])
        #expect(try await !texts(ClientCredentialsLoader(answer: content).failure()).contains("s3cr3t"))

        struct Leaky: Error { let header = "secret-in-error" }
        let url = try #require(URL(string: "https://as.example/token"))
        let loader = try ClientCredentialsLoader(
            tokenURL: url, clientID: "me", clientSecret: "secret-in-error", transport: ScriptedTransport { throw Leaky() })
        #expect(try await !texts(loader.failure()).contains("secret-in-error"))
    }

    @Test func `the secrets in a form that the server quotes are hidden`() async throws {
        let form = "refresh_token=r%2B%2F%3D&client_secret=s3cr3t%2B%2F%3A+%C3%BC"
        let answer = TransportResponse(400, #"{"error":"e","error_description":"\#(form)"}"#)
        let failure = try await RefreshTokenLoader(answer: answer).failure(replacing: AccessToken("a+", refreshToken: "r+/="))
        #expect(failure.serverDescription == "refresh_token=[hidden]&client_secret=[hidden]")
    }

    @Test func `a refresh and a revocation don't show what they carry`() async throws {
        let transport = ScriptedTransport { .token(#""refresh_token":"xyzzy""#) }
        let url = try #require(URL(string: "https://as.example/token"))
        let loader = try RefreshTokenLoader(tokenURL: url, clientID: "me", clientSecret: "xyzzy", transport: transport)
        let client = try OAuthClient(
            id: "me", authentication: .clientSecretBasic("xyzzy"), tokenURL: url, transport: transport)
        let token = try await loader.loadToken(replacing: AccessToken("xyzzy", refreshToken: "xyzzy"))
        try await client.revoke(token, at: url)
        let everything = texts(loader) + texts(client) + texts(token) + texts(transport.requests)
        #expect(!everything.contains("xyzzy"))
        #expect(!everything.contains(Data("me:xyzzy".utf8).base64EncodedString()))
    }

    @Test func `loaders, requests and responses don't show what they carry`() async throws {
        let transport = ScriptedTransport { .token(#""refresh_token":"xyzzy""#) }
        let url = try #require(URL(string: "https://as.example/token"))
        for authentication in [ClientAuthentication.clientSecretBasic("xyzzy"), .clientSecretPost("xyzzy")] {
            let client = try OAuthClient(id: "me", authentication: authentication, tokenURL: url, transport: transport)
            let loader = try ClientCredentialsLoader(client)
            let token = try await loader.loadToken(replacing: nil)
            let everything =
                texts(loader) + texts(client) + texts(authentication) + texts(token) + texts(transport.requests)
                + texts(TransportResponse("xyzzy"))
            #expect(!everything.contains("xyzzy"))
            #expect(!everything.contains(Data("me:xyzzy".utf8).base64EncodedString()))
        }
    }
}
