import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

/// Every grant is sent as its specification says.
@Suite(.inRealTime)
struct GrantTests {
    let transport = ScriptedTransport { .token() }

    func client(
        _ authentication: ClientAuthentication = .publicClient, _ transport: (any TokenTransport)? = nil
    ) throws -> OAuthClient {
        try OAuthClient(
            id: "s6BhdRkqt3", authentication: authentication, tokenURL: #require(URL(string: "https://as.example/token")),
            issuer: "https://as.example", transport: transport ?? self.transport)
    }

    /// Returns the decoded names and values of the form that a grant is sent as.
    func form(_ grant: Grant, _ authentication: ClientAuthentication = .publicClient) async throws -> [String] {
        _ = try await client(authentication).token(for: grant)
        let body = try String(decoding: #require(transport.requests.last).body, as: UTF8.self)
        return body.split(separator: "&").map { $0.replacing("+", with: " ").removingPercentEncoding ?? "" }
    }

    // RFC 6749 §4.1.3, §4.4.2, §6; RFC 7636 §4.5.
    @Test func `the forms for a code, client credentials and a refresh token match the specification`() async throws {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        #expect(
            try await form(
                .authorizationCode(
                    "SplxlOBeZQQYbYS6WxSbIA", verifier: verifier, redirectURI: "https://client.example.com/cb"))
                == [
                    "grant_type=authorization_code", "code=SplxlOBeZQQYbYS6WxSbIA", "redirect_uri=https://client.example.com/cb",
                    "code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "client_id=s6BhdRkqt3",
                ])
        #expect(
            try await form(.clientCredentials(scope: "a b"), .clientSecretBasic("x")) == [
                "grant_type=client_credentials", "scope=a b",
            ])
        // MCP's Python SDK (2.3.0) looks for the id in the form, even if the header has one.
        #expect(
            try await form(.clientCredentials(), .clientSecretBasic("x").namingClient) == [
                "grant_type=client_credentials", "client_id=s6BhdRkqt3",
            ])
        #expect(
            try await form(.refreshToken("tGzv3JOkF0XG5Qx2TlKWIA"))
                == ["grant_type=refresh_token", "refresh_token=tGzv3JOkF0XG5Qx2TlKWIA", "client_id=s6BhdRkqt3"])
    }

    // RFC 8693 §2.3: its example, request and answer.
    @Test func `a token is exchanged as in the specification's example`() async throws {
        let transport = ScriptedTransport {
            TransportResponse(
                #"""
                {
                 "access_token":"eyJhbGciOiJFUzI1NiIsImtpZCI6IjllciJ9.eyJhdWQiOiJodHRwczovL2JhY2tlbmQuZXhhbXBsZS5jb20ifQ.sig",
                 "issued_token_type":
                     "urn:ietf:params:oauth:token-type:access_token",
                 "token_type":"Bearer",
                 "expires_in":60
                }
                """#)
        }
        let answer = try await client(.clientSecretBasic("cnM"), transport).token(
            for: .tokenExchange(
                subject: "accVkjcJyb4BWCxGsndESCJQbdFMogUC5PbRDqceLTC", type: .accessToken,
                resource: ["https://backend.example.com/api"]))
        #expect(
            String(decoding: try #require(transport.requests.last).body, as: UTF8.self)
                == "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"
                + "&resource=https%3A%2F%2Fbackend.example.com%2Fapi"
                + "&subject_token=accVkjcJyb4BWCxGsndESCJQbdFMogUC5PbRDqceLTC"
                + "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token")
        #expect(answer.token.lifetime == .seconds(60) && answer.token.tokenType == "Bearer")
        #expect(answer.members["issued_token_type"] == TokenType.accessToken.uri)
    }

    // RFC 8693 §2.1: several targets, an actor, a type.
    @Test func `an exchange's form names several resources and audiences, and the actor`() async throws {
        let grant = Grant.tokenExchange(
            subject: "s", type: .jwt, actor: ("a", .idToken), requestedType: .saml2, audience: ["x", "y"],
            resource: ["https://a", "https://b"], scope: "api")
        #expect(
            try await form(grant) == [
                "grant_type=urn:ietf:params:oauth:grant-type:token-exchange", "resource=https://a", "resource=https://b",
                "audience=x", "audience=y", "scope=api", "requested_token_type=urn:ietf:params:oauth:token-type:saml2",
                "subject_token=s", "subject_token_type=urn:ietf:params:oauth:token-type:jwt", "actor_token=a",
                "actor_token_type=urn:ietf:params:oauth:token-type:id_token", "client_id=s6BhdRkqt3",
            ])
    }

    // RFC 7523 §2.1 and §2.2.
    @Test func `an assertion can be a grant or a client authentication`() async throws {
        #expect(
            try await form(.jwtBearer("eyJhbGciOiJFUzI1NiIsImtpZCI6IjE2In0.eyJpc3Mi.J9l-ZhwP"))
                == [
                    "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer",
                    "assertion=eyJhbGciOiJFUzI1NiIsImtpZCI6IjE2In0.eyJpc3Mi.J9l-ZhwP", "client_id=s6BhdRkqt3",
                ])
        let authentication = ClientAuthentication.assertion { "eyJhbGciOiJSUzI1NiIsImtpZCI6IjIyIn0.eyJpc3Mi.cC4hiUPo" }
        #expect(
            try await form(.authorizationCode("n0esc3NRze7LTCu7iYzS6a5acc3f0ogp4", verifier: nil), authentication)
                == [
                    "grant_type=authorization_code", "code=n0esc3NRze7LTCu7iYzS6a5acc3f0ogp4", "client_id=s6BhdRkqt3",
                    "client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                    "client_assertion=eyJhbGciOiJSUzI1NiIsImtpZCI6IjIyIn0.eyJpc3Mi.cC4hiUPo",
                ])
        #expect(transport.requests.last?.headers["Authorization"] == nil)
    }

    // RFC 8705 §2.1: the client's id alone; the transport presents the certificate.
    @Test func `a client that authenticates with its certificate sends its id`() async throws {
        _ = try await ClientCredentialsLoader(client(.mutualTLS)).loadToken(replacing: nil)
        #expect(
            transport.requests.map { String(decoding: $0.body, as: UTF8.self) } == [
                "grant_type=client_credentials&client_id=s6BhdRkqt3"
            ])
    }

    @Test func `a grant of any type can be presented`() async throws {
        var form: Form = [:]
        form.add("username", "anna")
        form.add("password", "pw")
        form.add("x", secret: "y")
        #expect(
            try await self.form(Grant(type: "password", form)) == [
                "grant_type=password", "username=anna", "password=pw", "x=y", "client_id=s6BhdRkqt3",
            ])
    }

    @Test(arguments: ["grant_type", "client_id", "client_secret", "client_assertion", "client_assertion_type"])
    func `a grant can't replace a parameter of the client's authentication`(name: String) async throws {
        let client = try client()
        let error = try await #require(throws: OAuthError.self) { try await client.token(for: Grant(type: "x", [name: "hush"])) }
        #expect(error.code == .invalidConfiguration && "\(error)".contains("'\(name)'") && !"\(error)".contains("hush"))
        #expect(transport.requests.isEmpty)
    }

    // RFC 6749 §7.1.
    @Test func `a token of another type is used if the client accepts that type`() async throws {
        let url = try #require(URL(string: "https://as.example/token"))
        let answer = TransportResponse(#"{"access_token":"a","token_type":"dpop","expires_in":7}"#)
        let client = try OAuthClient(
            id: "me", tokenURL: url, acceptedTokenTypes: ["DPoP"], transport: ScriptedTransport { answer })
        #expect(try await client.token(for: .refreshToken("r")).token.tokenType == "DPoP")
    }

    // RFC 6749 §5.2: the remedy for a refusal depends on where the refused credential came from.
    @Test(arguments: [
        (Grant.authorizationCode("c", verifier: nil), TokenServiceError.Remedy.signIn), (.refreshToken("r"), .signIn),
        (.clientCredentials(), .clientRegistration), (.jwtBearer("a"), .clientRegistration),
        (.tokenExchange(subject: "s", type: .jwt), .clientRegistration),
        (Grant(type: "x", remedyWhenRefused: .programChange), .programChange),
    ])
    func `a refused grant's error says how to recover from it`(grant: Grant, remedy: TokenServiceError.Remedy) async throws {
        for error in ["invalid_grant", "interaction_required", "login_required", "consent_required"] {
            let client = try client(.publicClient, ScriptedTransport { TransportResponse(400, #"{"error":"\#(error)"}"#) })
            let failure = try await #require(throws: OAuthError.self) { try await client.token(for: grant) }
            #expect(failure.remedy == remedy, "\(error)")
        }
        let client = try client(.publicClient, ScriptedTransport { TransportResponse(401, #"{"error":"invalid_client"}"#) })
        let failure = try await #require(throws: OAuthError.self) { try await client.token(for: grant) }
        #expect(failure.remedy == .clientRegistration, "a refused client assertion")
    }

    @Test(arguments: [
        (Grant.authorizationCode("c", verifier: nil), TokenServiceError.Remedy.signIn), (.refreshToken("r"), .signIn),
        (.clientCredentials(), .clientRegistration),
    ])
    func `a code or a refresh token that was used or has expired asks for a sign-in, in Glewlwyd's and Zoho's words too`(
        grant: Grant, remedy: TokenServiceError.Remedy
    ) async throws {
        let client = try client(.publicClient, ScriptedTransport { TransportResponse(403, #"{"error":"invalid_code"}"#) })
        let failure = try await #require(throws: OAuthError.self) { try await client.token(for: grant) }
        #expect(failure.error == "invalid_code" && failure.remedy == remedy)
    }

    // RFC 6749 §4.1.2: the code is spent, so its refresh token must not be lost.
    @Test(arguments: RenewalTests.salvageable)
    func `the refresh token in an unusable answer to a code is kept`(
        body: String, code: OAuthError.Code, reason: String
    ) async throws {
        let client = try client(.publicClient, ScriptedTransport { TransportResponse(body) })
        let salvaged = try await #require(throws: SalvagedGrant.self) {
            try await client.token(for: .authorizationCode("c", verifier: nil))
        }
        // Without an old token to compare with, the last one counts.
        #expect(["r2", "r1"].contains(salvaged.grant.refreshToken))
        #expect((salvaged.reason as? OAuthError)?.code == code)
        #expect(!texts(salvaged).contains("r2"))
    }

    @Test func `a loader that starts with a code goes on with the refresh token`() async throws {
        let loader = GrantLoader(try client(), isRepeatable: false) { previous in
            if let token = previous?.refreshToken { return .refreshToken(token) }
            return .authorizationCode("c", verifier: nil)
        }
        _ = try await loader.loadToken(replacing: nil)
        _ = try await loader.loadToken(replacing: AccessToken("old", refreshToken: "r"))
        #expect(
            transport.requests.map { String(decoding: $0.body, as: UTF8.self) } == [
                "grant_type=authorization_code&code=c&client_id=s6BhdRkqt3",
                "grant_type=refresh_token&refresh_token=r&client_id=s6BhdRkqt3",
            ])
    }

    @Test func `a repeatable loader refuses a grant that can be spent`() async throws {
        let loader = GrantLoader(try client(), isRepeatable: true) { _ in .refreshToken("r") }
        #expect(try await loader.failure().code == .invalidConfiguration && loader.isRepeatable)
        #expect(transport.requests.isEmpty)
    }
}
