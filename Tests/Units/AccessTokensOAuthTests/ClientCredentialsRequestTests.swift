import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

@Suite(.inRealTime)
struct ClientCredentialsRequestTests {
    let transport = ScriptedTransport { .token() }
    let url = URL(string: "https://as.example/token?policy=a%20b")

    func request(
        id: String = "me", secret: String = "secret", scope: String? = nil,
        authentication: (String) -> ClientAuthentication = { .clientSecretBasic($0) }, adding parameters: Form = [:]
    ) async throws -> TransportRequest {
        let client = try OAuthClient(
            id: id, authentication: authentication(secret), tokenURL: #require(url), transport: transport)
        let loader = try ClientCredentialsLoader(client, scope: scope, additionalParameters: parameters)
        _ = try await loader.loadToken(replacing: nil)
        return try #require(transport.requests.last)
    }

    // RFC 6749 §4.4.2, §3.2 (the endpoint's query is retained).
    @Test func `the request is a form to the endpoint with its query`() async throws {
        let request = try await request()
        #expect(request.url == url)
        #expect(String(decoding: request.body, as: UTF8.self) == "grant_type=client_credentials")
        #expect(request.headers["Content-Type"] == "application/x-www-form-urlencoded")
        #expect(request.headers["Accept"] == "application/json")
    }

    // RFC 6749 App. B: spaces become plus signs, UTF-8 is encoded byte by byte.
    @Test func `scope and additional parameters are form-encoded`() async throws {
        let request = try await request(scope: "read write", adding: ["audience": "a&b=c*-._~", "resource": "https://api/ü"])
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == "grant_type=client_credentials&scope=read+write&audience=a%26b%3Dc*-._%7E&resource=https%3A%2F%2Fapi%2F%C3%BC")
    }

    // RFC 6749 §3.2: parameters without a value are omitted.
    @Test func `an empty scope is not sent`() async throws {
        #expect(try await String(decoding: request(scope: "").body, as: UTF8.self) == "grant_type=client_credentials")
    }

    // RFC 6749 §2.3.1 and App. B: id and secret are encoded separately before they are joined; a space as %20, since some servers
    // decode only %XX there.
    @Test(arguments: [
        ("me", "secret", "me:secret"), ("a:b c", "p+w/d:=&%2B x?", "a%3Ab%20c:p%2Bw%2Fd%3A%3D%26%252B%20x%3F"),
        ("ü", "€~*", "%C3%BC:%E2%82%AC%7E*"),
    ])
    func `basic authentication form-encodes id and secret separately`(id: String, secret: String, joined: String) async throws {
        let request = try await request(id: id, secret: secret)
        #expect(request.headers["Authorization"] == "Basic \(Data(joined.utf8).base64EncodedString())")
        #expect(!String(decoding: request.body, as: UTF8.self).contains("secret"))
    }

    // RFC 6749 §2.3: one method per request.
    @Test func `post authentication puts id and secret into the form alone`() async throws {
        let request = try await request(id: "a:b", secret: "p+w d", authentication: { .clientSecretPost($0) })
        #expect(request.headers["Authorization"] == nil)
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == "grant_type=client_credentials&client_id=a%3Ab&client_secret=p%2Bw+d")
    }

    // RFC 9700 §4.14.2: nothing is sent again blindly; the service decides about pauses and retries.
    @Test(arguments: [200, 401, 500, 503])
    func `a load is one request, however it ends`(status: Int) async throws {
        let transport = ScriptedTransport { TransportResponse(status: status) }
        let loader = try ClientCredentialsLoader(
            tokenURL: #require(url), clientID: "me", clientSecret: "secret", transport: transport)
        await #expect(throws: OAuthError.self) { try await loader.loadToken(replacing: nil) }
        #expect(transport.requests.count == 1)
        #expect(loader.isRepeatable)
    }

    @Test func `a transport's own error becomes a network error with that cause`() async throws {
        struct Broken: Error {}
        let loader = try ClientCredentialsLoader(
            tokenURL: #require(url), clientID: "me", clientSecret: "secret", transport: ScriptedTransport { throw Broken() })
        let failure = try await loader.failure()
        #expect(failure.code == .connectionFailed)
        #expect(failure.remedy == .retry)
        #expect(failure.underlying is Broken)
    }

    @Test func `a transport's CancellationError is passed on`() async throws {
        let loader = try ClientCredentialsLoader(
            tokenURL: #require(url), clientID: "me", clientSecret: "secret",
            transport: ScriptedTransport { throw CancellationError() })
        await #expect(throws: CancellationError.self) { try await loader.loadToken(replacing: nil) }
    }

    // RFC 7617; three of six servers don't undo RFC 6749's encoding.
    @Test func `basic credentials can be sent without form encoding`() async throws {
        let secret = "a/b+c%d:e~ f"
        let request = try await request { _ in .clientSecretBasic(secret).withoutFormEncoding }
        #expect(request.headers["Authorization"] == "Basic \(Data("me:\(secret)".utf8).base64EncodedString())")
    }

    @Test(arguments: [
        (ClientAuthentication.clientSecretBasic("a/b+c"), true), (.clientSecretBasic("abc*-._"), false),
        (.clientSecretBasic("a/b+c").withoutFormEncoding, false), (.clientSecretPost("a/b+c"), false),
    ])
    func `the error of a refused client whose secret needs encoding suggests another method`(
        authentication: ClientAuthentication, isTold: Bool
    ) async throws {
        for (status, body) in [(401, #"{"error":"invalid_client"}"#), (400, #"{"error":"invalid_client"}"#), (401, "")] {
            let client = try OAuthClient(
                id: "me", authentication: authentication, tokenURL: #require(URL(string: "https://as.example/token")),
                transport: ScriptedTransport { TransportResponse(status, body) })
            let error = try await #require(throws: OAuthError.self) { try await client.token(for: .clientCredentials()) }
            #expect("\(error)".contains("clientSecretPost") == isTold, "\(error)")
            #expect(!"\(error)".contains("a/b+c"))
        }
    }
}
