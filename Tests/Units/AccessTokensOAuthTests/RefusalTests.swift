import AccessTokens
import AccessTokensHTTP
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

/// What a server's refusal means, for each code, status, grant and kind of body.
@Suite(.inRealTime)
struct RefusalTests {
    static let user: [Grant] = [.refreshToken("r"), .authorizationCode("c", verifier: nil), Grant(type: "x")]
    static let own: [Grant] = [.clientCredentials(), .jwtBearer("a"), .tokenExchange(subject: "s", type: .jwt)]
    static let device = Grant(type: "urn:ietf:params:oauth:grant-type:device_code", ["device_code": "d"])

    func remedy(_ grant: Grant, _ status: Int, _ body: String) async throws -> TokenServiceError.Remedy {
        let client = try OAuthClient(
            id: "me", tokenURL: #require(URL(string: "https://as.example/token")),
            transport: ScriptedTransport { TransportResponse(status, body) })
        return try await #require(throws: OAuthError.self) { try await client.token(for: grant) }.remedy
    }

    func remedy(_ grant: Grant, _ status: Int, code: String) async throws -> TokenServiceError.Remedy {
        try await remedy(grant, status, #"{"ok":false,"error":"\#(code)"}"#)
    }

    @Test(
        arguments: [
            "bad_refresh_token", "invalid_refresh_token", "invalid_code", "bad_token", "invalid_grant", "interaction_required",
            "login_required", "consent_required", "mfa_required", "authorization_declined", "bad_verification_code",
            "incorrect_device_code",
        ], [200, 400, 401, 403, 404])
    func `53: an explicit refusal of a grant asks for a sign-in, at any status of a working server`(
        code: String, status: Int
    ) async throws {
        for grant in Self.user { #expect(try await remedy(grant, status, code: code) == .signIn) }
        for grant in Self.own { #expect(try await remedy(grant, status, code: code) == .clientRegistration) }
    }

    @Test(
        arguments: ["mfa_required", "authorization_declined", "bad_verification_code", "incorrect_device_code"],
        [408, 429, 500, 503])
    func `a code that only a user can act on asks for a sign-in, at any status`(code: String, status: Int) async throws {
        #expect(try await remedy(.refreshToken("r"), status, code: code) == .signIn)
    }

    @Test(arguments: ["access_denied", "expired_token", "token_expired"], [200, 400, 401, 403])
    func `an ended device sign-in asks for another one, while the same code leaves a refresh unclear`(
        code: String, status: Int
    ) async throws {
        #expect(try await remedy(Self.device, status, code: code) == .signIn)
        #expect(try await remedy(.refreshToken("r"), status, code: code) == .signInOrRegistration)
    }

    // Keycloak.
    @Test(arguments: ["not_linked", "token_expired"])
    func `an exchange for a token of an account that isn't linked, or no longer, asks for its user`(code: String) async throws {
        var grant = Grant.tokenExchange(subject: "s", type: .accessToken)
        #expect(try await remedy(grant, 400, code: code) == .clientRegistration)
        grant.remedyWhenRefused = .signIn
        #expect(try await remedy(grant, 400, code: code) == .signIn)
        #expect(try await remedy(.refreshToken("r"), 400, code: code) == .signInOrRegistration)
    }

    @Test func `a code that only a user can act on has words of its own, whoever the grant belongs to`() async throws {
        for grant in [Grant.refreshToken("r"), .clientCredentials()] {
            let client = try OAuthClient(
                id: "me", tokenURL: #require(URL(string: "https://as.example/token")),
                transport: ScriptedTransport { TransportResponse(403, #"{"error":"mfa_required"}"#) })
            let error = try await #require(throws: OAuthError.self) { try await client.token(for: grant) }
            #expect("\(error)".hasSuffix("A user must do something first, as the code says, or sign in again."), "\(error)")
        }
    }

    // Museum 29.
    @Test(
        arguments: [
            "ratelimited", "rate_limited", "temporarily_unavailable", "server_error", "internal_error", "fatal_error",
            "slow_down", "service_unavailable", "authorization_pending",
        ], [200, 400, 401, 403, 404, 429, 500, 503])
    func `53: a temporary failure of the server is no sign-out, at any status`(code: String, status: Int) async throws {
        for grant in Self.user + Self.own { #expect(try await remedy(grant, status, code: code) == .retry) }
    }

    // Salesforce refuses a second request while the first one is under way; Exact Online one that comes too early.
    @Test(arguments: [
        #"{"error":"invalid_grant","error_description":"token request is already being processed"}"#,
        #"{"error":"invalid_grant","error_description":"Token request is already being processed."}"#,
        #"{"error":"access_denied","error_description":"Rate limit exceeded: access_token not expired"}"#,
    ])
    func `53: a refusal whose description says that waiting helps is no sign-out`(body: String) async throws {
        for status in [200, 400, 401, 403] { #expect(try await remedy(.refreshToken("r"), status, body) == .retry) }
    }

    @Test(arguments: ["Bad Request", "Unauthorized", "odd", "invalid_request", "access_denied", "unverified_user_email"])
    func `an unknown code leaves a user's grant unclear, but not a client's own grant`(code: String) async throws {
        for status in [200, 400, 401, 403] {
            for grant in Self.user { #expect(try await remedy(grant, status, code: code) == .signInOrRegistration) }
        }
        for status in [402, 404, 405, 410, 415, 422] where code != "invalid_request" {
            for grant in Self.user + Self.own { #expect(try await remedy(grant, status, code: code) == .retry) }
        }
        for status in [401, 403] {
            for grant in Self.own { #expect(try await remedy(grant, status, code: code) == .clientRegistration) }
        }
    }

    // RFC 8693 §2.2.2.
    @Test(arguments: [TokenServiceError.Remedy.signIn, .clientRegistration])
    func `an expired subject token has the remedy that the program gave its exchange`(
        remedy: TokenServiceError.Remedy
    ) async throws {
        var grant = Grant.tokenExchange(subject: "s", type: .accessToken)
        grant.remedyWhenRefused = remedy
        for status in [200, 400, 401] { #expect(try await self.remedy(grant, status, code: "invalid_request") == remedy) }
        #expect(try await self.remedy(grant, 503, code: "invalid_request") == .retry)
    }

    // A firewall, a captive portal, a proxy.
    @Test(arguments: ["<html>", "<!DOCTYPE html><title>Blocked</title>", "Forbidden", "[]", "{", #""denied""#, "\u{FEFF}"])
    func `53: a page with status 403 doesn't count as an answer of the server`(body: String) async throws {
        for grant in Self.user + Self.own { #expect(try await remedy(grant, 403, body) == .retry) }
        for grant in Self.user { #expect(try await remedy(grant, 403, "") == .retry) }
        let client = try OAuthClient(
            id: "me", tokenURL: #require(URL(string: "https://as.example/token")),
            transport: ScriptedTransport { TransportResponse(403, body) })
        let error = try await #require(throws: OAuthError.self) { try await client.token(for: .refreshToken("r")) }
        #expect("\(error)".contains("firewall"), "\(error)")
    }

    @Test(arguments: [
        "incorrect_client_credentials", "redirect_uri_mismatch", "device_flow_disabled", "bad_client_secret",
        "invalid_client_id", "invalid_resource", "invalid_client", "unauthorized_client", "invalid_scope",
    ])
    func `53: a refused client ends no session`(code: String) async throws {
        for status in [200, 400, 401, 403] {
            for grant in Self.user + Self.own { #expect(try await remedy(grant, status, code: code) == .clientRegistration) }
        }
    }

    @Test func `each code that is known has a row with its source`() throws {
        let page = URL(filePath: #filePath).appending(path: "../../../../Docs/Decisions/OAuth.md").standardized
        let text = try String(contentsOf: page, encoding: .utf8)
        let table = try #require(text.split(separator: "\n| code | means | sent by |\n").last?.split(separator: "\n\n").first)
        let rows = table.split(separator: "\n").dropFirst()
        let listed = rows.flatMap { $0.split(separator: "|")[0].matches(of: #/`([a-z_]+)`/#).map { String($0.1) } }
        #expect(Set(listed) == Set(Refusal.codes.keys))
        #expect(rows.allSatisfy { $0.contains("](https://") }, "a row without a source")
    }

    @Test func `an unclear answer with a new refresh token ends no session`() async throws {
        let client = try OAuthClient(
            id: "me", tokenURL: #require(URL(string: "https://as.example/token")),
            transport: ScriptedTransport { TransportResponse(200, #"{"error":"odd","refresh_token":"r2"}"#) })
        let salvaged = try await #require(throws: SalvagedGrant.self) { try await client.token(for: .refreshToken("r")) }
        #expect(salvaged.remedy == .retry && salvaged.grant.refreshToken == "r2")
    }

    /// A kind of refusal, and how many requests it costs until the service asks for a sign-in; `nil`: it never does.
    struct Kind: Sendable, CustomTestStringConvertible {
        let status: Int, body: String, requests: Int?

        init(_ status: Int, _ body: String, _ requests: Int?) {
            (self.status, self.body, self.requests) = (status, body, requests)
        }

        static func code(_ status: Int, _ code: String, _ requests: Int?) -> Kind {
            Kind(status, #"{"error":"\#(code)"}"#, requests)
        }

        var testDescription: String { "\(status) \(body)" }
    }

    static let kinds: [Kind] = [
        .code(400, "invalid_grant", 1), .code(200, "bad_refresh_token", 1),
        .code(200, "invalid_refresh_token", 1), .code(400, "invalid_code", 1),
        .code(403, "mfa_required", 1), .code(400, "interaction_required", 1),
        .code(400, "Bad Request", 11), .code(401, "Unauthorized", 11),
        .code(200, "odd", 11), .code(403, "odd", 11),
        .code(400, "invalid_request", 11), Kind(400, "", 11),
        Kind(401, "", 11), Kind(400, #"{"status":"BAD_REFRESH_TOKEN"}"#, 11),
        Kind(400, "<html>", 11),
        .code(400, "ratelimited", nil), .code(200, "fatal_error", nil),
        .code(401, "server_error", nil), .code(503, "invalid_grant", nil),
        Kind(403, "<html>", nil), Kind(403, "", nil),
        Kind(503, "", nil), Kind(200, "<html>", nil),
        .code(401, "invalid_client", nil),
    ]

    @Test(arguments: kinds)
    func `53: a day of refusals, one call a minute, ends in a sign-in only if the server means the grant`(
        kind: Kind
    ) async throws {
        let clock = ManualClock()
        let transport = ScriptedTransport { TransportResponse(kind.status, kind.body) }
        let tokens = try TokenService(
            environment: .init(clock: clock, seed: 1), loader: RefreshTokenLoader(answer: .token(), transport: transport))
        await tokens.replace(with: AccessToken("", lifetime: .zero, refreshToken: "r"))
        let minutes = Int.everyday(180, thorough: 1_440)
        var last: TokenServiceError?
        for _ in 1...minutes {
            last = try await #require(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
            clock.advance(by: .seconds(60))
        }
        if let requests = kind.requests {
            #expect(transport.requests.count == requests && last?.remedy == .signIn, "\(last as Any)")
        } else {
            #expect(transport.requests.count >= minutes / 2 && last?.remedy != .signIn, "\(last as Any)")
        }
    }
}
