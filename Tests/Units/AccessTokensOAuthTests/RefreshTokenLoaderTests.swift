import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

@Suite(.inRealTime)
struct RefreshTokenLoaderTests {
    let transport = ScriptedTransport { .token() }
    let previous = AccessToken("old", scope: "read write", refreshToken: "r+/=")

    func form(
        secret: String = "secret", scope: String? = nil, scopeMayShrink: Bool = false,
        authentication: (String) -> ClientAuthentication = { .clientSecretBasic($0) }, adding parameters: Form = [:],
        replacing previous: AccessToken? = nil
    ) async throws -> String {
        let client = try OAuthClient(
            id: "me", authentication: authentication(secret),
            tokenURL: #require(URL(string: "https://as.example/token?policy=1")), transport: transport)
        let loader = try RefreshTokenLoader(
            client, scope: scope, scopeMayShrink: scopeMayShrink, additionalParameters: parameters)
        _ = try await loader.loadToken(replacing: previous ?? self.previous)
        return try String(decoding: #require(transport.requests.last).body, as: UTF8.self)
    }

    // RFC 6749 §6, §3.2 (the endpoint's query is retained).
    @Test func `the refresh token of the last token is the grant`() async throws {
        #expect(try await form() == "grant_type=refresh_token&refresh_token=r%2B%2F%3D")
        let request = try #require(transport.requests.last)
        #expect(request.url.absoluteString == "https://as.example/token?policy=1")
        #expect(request.headers["Authorization"] == "Basic \(Data("me:secret".utf8).base64EncodedString())")
        #expect(transport.requests.count == 1)
    }

    // RFC 6749 §2.3.1: one method per request.
    @Test func `post authentication puts id and secret into the form alone`() async throws {
        let expected = "grant_type=refresh_token&refresh_token=r%2B%2F%3D&resource=x&client_id=me&client_secret=secret"
        #expect(try await form(authentication: { .clientSecretPost($0) }, adding: ["resource": "x"]) == expected)
        #expect(transport.requests.last?.headers["Authorization"] == nil)
    }

    // RFC 6749 §3.2.1: a public client names itself in the form.
    @Test func `a public client sends its id and no secret`() async throws {
        let loader = try RefreshTokenLoader(
            tokenURL: #require(URL(string: "https://as.example/token")), clientID: "app", transport: transport)
        _ = try await loader.loadToken(replacing: previous)
        let request = try #require(transport.requests.last)
        let form = String(decoding: request.body, as: UTF8.self)
        #expect(form == "grant_type=refresh_token&refresh_token=r%2B%2F%3D&client_id=app")
        #expect(request.headers["Authorization"] == nil)
    }

    // RFC 6749 §6, §3.3: a server may spell the granted scopes in its own way, so the answer's scope isn't used as a filter by
    // default.
    @Test(arguments: ["read write", "api://x/read", "READ", "", nil])
    func `the scope is sent as it was configured, whatever the last answer granted`(granted: String?) async throws {
        let form = try await form(scope: " read  admin", replacing: AccessToken("old", scope: granted, refreshToken: "r"))
        #expect(form == "grant_type=refresh_token&refresh_token=r&scope=read+admin")
    }

    // RFC 6749 §6: the scope must not include any that was not granted; none means all that were granted.
    @Test(
        arguments: [
            (nil, "read write", nil), ("", "read write", nil), ("read", "read write", "read"),
            ("write read", "read write", "write+read"),
            ("read admin", "read write", "read"), ("read", nil, "read"),
        ] as [(String?, String?, String?)])
    func `a scope that may shrink is never widened`(wanted: String?, granted: String?, sent: String?) async throws {
        let previous = AccessToken("old", scope: granted, refreshToken: "r")
        let form = try await form(scope: wanted, scopeMayShrink: true, replacing: previous)
        let scope = sent.map { "&scope=\($0)" } ?? ""
        #expect(form == "grant_type=refresh_token&refresh_token=r\(scope)")
    }

    @Test func `a scope that has shrunk to nothing is an error, not a request for all`() async throws {
        let error = await #expect(throws: OAuthError.self) { try await form(scope: "admin", scopeMayShrink: true) }
        #expect(error?.code == .invalidConfiguration)
        #expect(transport.requests.isEmpty)
    }

    // Museum 29: without a signed-in user nothing is sent, and the error is not one of the network.
    @Test(arguments: [nil, AccessToken("old"), AccessToken("old", refreshToken: "")])
    func `without a refresh token the error asks for a sign-in`(previous: AccessToken?) async throws {
        let loader = try RefreshTokenLoader(answer: .token(), transport: transport)
        let failure = try await loader.failure(replacing: previous)
        #expect(failure.code == .notSignedIn)
        #expect(failure.remedy == .signIn)
        #expect("\(failure)".contains("no user is signed in, or the server gave none. Nothing was sent"))
        #expect(transport.requests.isEmpty)
    }

    @Test func `the error of a caller without a signed-in user mentions no refusal`() async throws {
        let tokens = TokenService(loader: try RefreshTokenLoader(answer: .token(), transport: transport))
        let error = try #require(await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() })
        #expect(error.remedy == .signIn && transport.requests.isEmpty)
        let cause = "There is no refresh token: no user is signed in, or the server gave none. Nothing was sent."
        let advice = "There is no valid grant. Sign in again, and pass the new token to replace(with:)."
        #expect("\(error)".hasPrefix("\(advice) Cause: \(cause)"))
    }

    // RFC 9700 §4.14.2 (museum 19): nothing is sent again, whatever happened.
    @Test(arguments: [200, 400, 401, 403, 500, 503])
    func `a load is one request, however it ends`(status: Int) async throws {
        let transport = ScriptedTransport { TransportResponse(status: status) }
        let loader = try RefreshTokenLoader(answer: .token(), transport: transport)
        #expect(try await loader.failure().remedy != .signIn)
        #expect(transport.requests.count == 1)
        #expect(!loader.isRepeatable)
        #expect(try #require(transport.requests.first).timeLimit < RefreshPolicy().loadTimeout)
    }

    @Test func `after a connection that failed nothing is sent again, and the user stays signed in`() async throws {
        let transport = ScriptedTransport { throw URLError(.networkConnectionLost) }
        let failure = try await RefreshTokenLoader(answer: .token(), transport: transport).failure()
        #expect(failure.code == .connectionFailed)
        #expect(failure.remedy == .retry)
        #expect(transport.requests.count == 1)
    }

    @Test(arguments: [ClientAuthentication.clientSecretBasic(""), .clientSecretPost("")])
    func `an empty client secret is refused`(method: ClientAuthentication) async throws {
        let error = await #expect(throws: OAuthError.self) { try await form(authentication: { _ in method }) }
        #expect(error?.code == .invalidConfiguration && "\(error as Any)".contains("secret is empty"))
    }
}
