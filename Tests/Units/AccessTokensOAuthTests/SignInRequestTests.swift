import AccessTokens
import Foundation
import Testing
import AccessTokensHTTP

@testable import AccessTokensOAuth

struct SignInRequestTests {
    let transport = ScriptedTransport { .token() }

    func request(
        issuer: String? = "https://honest.as.example", requiresIssuer: Bool = false,
        url: String = "https://as.example/authorize?policy=1", adding form: Form = [:]
    ) throws -> SignInRequest {
        let client = try OAuthClient(
            id: "app", tokenURL: #require(URL(string: "https://as.example/token")), issuer: issuer, transport: transport)
        return try SignInRequest(
            client, authorizationURL: #require(URL(string: url)), redirectURI: "app:/cb", scope: "a b",
            additionalParameters: form,
            requiresIssuer: requiresIssuer)
    }

    func query(_ request: SignInRequest) throws -> [String: String] {
        let items = try #require(URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems)
        return Dictionary(items.map { ($0.name, $0.value ?? "") }) { $1 }
    }

    // RFC 7636 App. B; indirectly FIPS 180-4.
    @Test func `the challenge matches the specification's example`() throws {
        let verifier = CodeVerifier("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        #expect(verifier.challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
        // RFC 7636 App. A.
        #expect(Base64URL.encode([3, 236, 255, 224, 193]) == "A-z_4ME")
        #expect(
            Base64URL.encode([
                116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105, 214, 191, 240,
                91, 88,
                5, 88, 83, 132, 141, 121,
            ]) == verifier.value)
    }

    // RFC 7636 §4.1, §7.1.
    @Test func `a verifier has 43 characters, and each one is new`() {
        let (a, b) = (CodeVerifier(), CodeVerifier())
        #expect(a != b && a.value.utf8.count == 43)
    }

    // RFC 6749 §4.1.1; RFC 7636 §4.3.
    @Test func `the URL carries challenge and state, and its own query`() throws {
        let query = try query(request(adding: ["resource": "https://api", "prompt": "consent"]))
        #expect(query["policy"] == "1" && query["response_type"] == "code" && query["client_id"] == "app")
        #expect(query["redirect_uri"] == "app:/cb" && query["resource"] == "https://api" && query["prompt"] == "consent")
        #expect(query["code_challenge_method"] == "S256" && query["code_challenge"]?.utf8.count == 43)
        #expect(query["state"]?.utf8.count == 22)
    }

    @Test func `the verifier sent is the one the challenge was made from`() async throws {
        let request = try request()
        let query = try query(request)
        let callback = try #require(
            URL(string: "app:/cb?code=a%2Bb%20c+d&state=\(query["state"] ?? "")&iss=https%3A%2F%2Fhonest.as.example"))
        let grant = try request.grant(from: callback)
        #expect(!grant.isRepeatable && grant.form["code"] == "a+b c d" && grant.form["redirect_uri"] == "app:/cb")
        #expect(try CodeVerifier(#require(grant.form["code_verifier"])).challenge == query["code_challenge"])
    }

    // RFC 6749 §10.12 (state); RFC 9207 §2.4 (iss).
    @Test(arguments: [
        ("code=c", "state"), ("code=c&state=other", "state"), ("code=c&state=STATE&state=STATE", "repeated"),
        ("code=c&code=d&state=STATE", "repeated"), ("state=STATE", "no code"), ("code=&state=STATE", "no code"),
        ("code=c&state=STATE&iss=https%3A%2F%2Fattacker.example", "another authorization server"),
        ("code=c&state=STATE&iss=https%3A%2F%2Fhonest.as.example%2F", "another authorization server"),
        ("error=access_denied&state=other", "state"), ("", "state"),
    ])
    func `a callback of another sign-in or another server is refused`(callback: String, reason: String) throws {
        let request = try request()
        let state = try query(request)["state"] ?? ""
        let url = try #require(URL(string: "app:/cb?\(callback.replacing("STATE", with: state))"))
        let error = try #require(throws: OAuthError.self) { try request.grant(from: url) }
        #expect(error.code == .callbackMismatch && error.remedy == .signIn && !error.mayBeUnderWay)
        #expect("\(error)".contains(reason), "\(error)")
    }

    @Test(arguments: [(true, false), (false, true)])
    func `a callback must name the issuer if the server promises it`(isRequired: Bool, isAccepted: Bool) throws {
        let request = try request(requiresIssuer: isRequired)
        let url = try #require(URL(string: "app:/cb?code=c&state=\(query(request)["state"] ?? "")"))
        #expect(isAccepted == ((try? request.grant(from: url)) != nil))
    }

    // RFC 9207 §2.4: otherwise there would be nothing to compare with.
    @Test func `a sign-in that requires the issuer in its callback needs a known issuer`() throws {
        let error = try #require(throws: OAuthError.self) { try request(issuer: nil, requiresIssuer: true) }
        #expect(error.code == .invalidConfiguration && "\(error)".contains("issuer"))
    }

    // RFC 6749 §3.1.
    @Test(arguments: ["response_type=code", "state=x", "code_challenge=x", "code_challenge_method=plain", "scope=a"])
    func `an authorization URL whose query repeats a parameter of the sign-in is refused`(query: String) throws {
        let error = try #require(throws: OAuthError.self) { try request(url: "https://as.example/authorize?\(query)") }
        #expect(error.code == .invalidConfiguration && "\(error)".contains("repeats"))
    }

    // RFC 6749 §4.1.2.1.
    @Test func `a user's refusal asks for another sign-in`() throws {
        let request = try request()
        let state = try query(request)["state"] ?? ""
        let url = try #require(URL(string: "app:/cb?error=access_denied&error_description=no+\(state)&state=\(state)"))
        let error = try #require(throws: OAuthError.self) { try request.grant(from: url) }
        #expect(error.code == .refused && error.error == "access_denied" && error.remedy == .signIn)
        #expect(error.serverDescription == "no [hidden]")
    }

    // RFC 6749 §4.1.2.1; OpenID Connect Core §3.1.2.6.
    @Test(arguments: [
        ("access_denied", TokenServiceError.Remedy.signIn), ("user_cancelled_login", .signIn), ("login_required", .signIn),
        ("interaction_required", .signIn), ("consent_required", .signIn), ("account_selection_required", .signIn),
        ("unauthorized_client", .clientRegistration), ("invalid_scope", .clientRegistration),
        ("invalid_request", .clientRegistration),
        ("unsupported_response_type", .clientRegistration), ("invalid_request_uri", .clientRegistration),
        ("request_not_supported", .clientRegistration), ("invalid_target", .clientRegistration), ("server_error", .retry),
        ("temporarily_unavailable", .retry), ("odd", .signInOrRegistration),
    ])
    func `a refused authorization request says how to recover from it`(code: String, remedy: TokenServiceError.Remedy) throws {
        let request = try request()
        let state = try query(request)["state"] ?? ""
        let url = try #require(URL(string: "app:/cb?error=\(code)&error_description=Because.&state=\(state)"))
        let error = try #require(throws: OAuthError.self) { try request.grant(from: url) }
        #expect(error.code == .refused && error.error == code && error.remedy == remedy && !error.mayBeUnderWay)
        #expect(
            "\(error)".hasPrefix(
                "The authorization server at https://as.example/authorize refused the sign-in (app): \(code), \"Because.\". "),
            "\(error)")
        #expect(!"\(error)".contains("sign in again") && !"\(error)".contains("policy"))
        #expect("\(error)".contains("Another sign-in won't help") == (remedy == .clientRegistration))
    }

    // A callback may have both, and only the server knows which one it means.
    @Test(arguments: ["code", "access_token", "id_token"])
    func `18: a code or token that comes with a refusal is hidden in the refusal's words`(name: String) throws {
        let request = try request()
        let state = try query(request)["state"] ?? ""
        let words = "error=e-c0d3c0d3c0d3&error_description=got+%2563%30d3c0d3c0d3"
        let url = try #require(URL(string: "app:/cb?\(words)&\(name)=c0d3c0d3c0d3&state=\(state)"))
        let error = try #require(throws: OAuthError.self) { try request.grant(from: url) }
        #expect(error.error == "e-[hidden]" && error.serverDescription == "got [hidden]")
    }

    @Test(arguments: ["state", "client_id", "response_type", "code_challenge", "password", "login_hint&"])
    func `an additional parameter can't replace one of the sign-in`(name: String) throws {
        if name == "login_hint&" {
            #expect(try request(adding: [name: "x"]).url.absoluteString.hasSuffix("&login_hint%26=x"))
        } else {
            #expect(throws: OAuthError.self) { try request(adding: [name: "x"]) }
        }
    }

    @Test func `no text shows the state or the verifier`() throws {
        let request = try request()
        let query = try query(request)
        let grant = try request.grant(from: #require(URL(string: "app:/cb?code=c0d3c0d3&state=\(query["state"] ?? "")")))
        let verifier = try #require(grant.form["code_verifier"])
        let everything = texts(request) + texts(grant) + texts(grant.form) + texts(CodeVerifier(verifier))
        for secret in [verifier, query["state"] ?? "", "c0d3c0d3"] { #expect(!everything.contains(secret)) }
    }
}
