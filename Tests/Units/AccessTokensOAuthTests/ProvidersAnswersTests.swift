import AccessTokens
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing

/// Answers as providers document them, and what they must become.
@Suite(.inRealTime)
struct ProvidersAnswersTests {
    /// 28 November 2026, 12:00.
    static let now = Date(timeIntervalSince1970: 1_795_867_200)

    func client(
        _ answer: TransportResponse, acceptedTokenTypes: Set<String>? = nil, lifetimeWhenMissing: Duration? = .seconds(300)
    ) throws -> OAuthClient {
        try OAuthClient(
            id: "me", tokenURL: #require(URL(string: "https://as.example/token")), acceptedTokenTypes: acceptedTokenTypes,
            lifetimeWhenMissing: lifetimeWhenMissing, transport: ScriptedTransport { answer }, wallClock: { Self.now })
    }

    func token(_ answer: TransportResponse, acceptedTokenTypes: Set<String>? = nil) async throws -> AccessToken {
        try await client(answer, acceptedTokenTypes: acceptedTokenTypes).token(for: .refreshToken("r1")).token
    }

    func failure(_ answer: TransportResponse) async throws -> OAuthError {
        try await #require(throws: OAuthError.self) { try await client(answer).token(for: .refreshToken("r1")) }
    }

    static let form = ["Content-Type": "application/x-www-form-urlencoded; charset=utf-8"]

    // GitHub without `Accept`; Facebook before 2.3; a gateway that says it is JSON; a form of one line.
    @Test(arguments: [
        (
            "access_token=gho_16C7e42F292c6912E7710c838347Ae178B4a&expires_in=28800&refresh_token=ghr_1B4a2e77838347a7E420ce178F2E7c"
                + "&refresh_token_expires_in=15897600&scope=repo%2Cgist&token_type=bearer",
            AccessToken(
                "gho_16C7e42F292c6912E7710c838347Ae178B4a", lifetime: .seconds(28800), scope: "repo,gist",
                refreshToken: "ghr_1B4a2e77838347a7E420ce178F2E7c",
                refreshTokenExpiration: now.addingTimeInterval(15_897_600))
        ),
        ("access_token=CAAC|x:y&expires=5183944", AccessToken("CAAC|x:y", lifetime: .seconds(5_183_944), refreshToken: "r1")),
        (
            "token_type=Bearer&access_token=a&scope=a+b%20c&refresh_token=%C3%BC&expires_in=3600\r\n",
            AccessToken("a", lifetime: .seconds(3600), scope: "a b c", refreshToken: "ü")
        ),
        ("access_token=a&expires_in=", AccessToken("a", lifetime: .seconds(300), refreshToken: "r1")),
    ])
    func `a form is read like JSON, whatever its content type`(body: String, token: AccessToken) async throws {
        for headers in [Self.form, ["Content-Type": "application/json"], [:]] {
            let answer = TransportResponse(200, body, headers: headers)
            #expect(try await self.token(answer) == token)
            let decoded = try await client(answer).token(for: .refreshToken("r1")).members.decoded(as: [String: String].self)
            #expect(decoded["access_token"] == token.value)
        }
    }

    // GitHub's refusals have the status 200.
    @Test(arguments: [200, 400]) func `a form that names an error is a refusal`(status: Int) async throws {
        let body = "error=bad_refresh_token&error_description=The+refresh+token+passed+is+incorrect+or+expired."
        let failure = try await failure(TransportResponse(status, body, headers: Self.form))
        #expect(failure.error == "bad_refresh_token" && failure.remedy == .signIn)
        #expect(failure.serverDescription == "The refresh token passed is incorrect or expired.")
    }

    @Test(arguments: ["code=403", "Access denied: policy=7", "reason=blocked&id=9"])
    func `a text that merely contains an equals sign isn't read as a server's refusal`(body: String) async throws {
        #expect(try await failure(TransportResponse(403, body)).remedy == .retry)
    }

    // Both forms at once, duplicates, broken encodings.
    @Test(arguments: [
        (#"{"access_token":"a","token_type":"Bearer"}&refresh_token=r2-seCret"#, "it is not JSON"),
        (#"access_token=a&x={"refresh_token":"r2-seCret"}"#, "it is not JSON"),
        (#"[{"access_token":"a","refresh_token":"r2-seCret"}]"#, "it is not a JSON object"),
        (")]}',\n" + #"{"access_token":"a","refresh_token":"r2-seCret"}"#, "it is not JSON"),
        ("access_token=a&access_token=b&refresh_token=r2-seCret", "access_token is repeated"),
        ("access_token=a&access%5Ftoken=b&refresh_token=r2-seCret", "access_token is repeated"),
        ("access_token=a&refresh_token=r3&refresh_token=r2-seCret", "refresh_token is repeated"),
        ("access_token=%FF%FE&refresh_token=r2-seCret", "its percent-encodings are not UTF-8"),
        ("access_token=a&name=M%FCller&refresh_token=r2-seCret", "its percent-encodings are not UTF-8"),
        ("access_token=a%0D%0AX&refresh_token=r2-seCret", "access_token has an invalid value"),
        ("refresh_token=r2-seCret&token_type=bearer", "access_token is missing"),
        ("access_token=a<br>&refresh_token=r2-seCret", "it is not JSON"),
        ("refresh_token=r2-seCret&access_token=" + String(repeating: "[", count: 1000), "access_token"),
        (#"{"refresh_token":"r2-seCret","x":"# + String(repeating: #"{"a":"#, count: 1000), "it is not JSON"),
    ])
    func `a body that is neither a form nor an object is a clear error, and its refresh token is kept`(
        body: String, reason: String
    ) async throws {
        for status in [200, 201] {
            let answer = TransportResponse(status, body, headers: Self.form)
            guard reason != "access_token" else {
                #expect(try await token(answer).refreshToken == "r2-seCret")
                continue
            }
            let salvaged = try await #require(throws: SalvagedGrant.self) {
                try await client(answer).token(for: .refreshToken("r1"))
            }
            #expect(salvaged.grant.refreshToken == "r2-seCret", "\(salvaged)")
            #expect("\(salvaged.reason)".contains(reason), "\(salvaged.reason)")
            #expect(!texts(salvaged.reason).contains("seCret"))
        }
        let refused = TransportResponse(502, body, headers: Self.form)
        #expect(try await !texts(failure(refused)).contains("seCret"))
    }

    // An answer may quote the request, whose refresh token isn't a new one.
    @Test(arguments: [
        #"{"error":"e","uri":"https://x/?a=1&refresh_token=r0-echoed&b=2","x"#,
        #"{"refresh_token":"r2","uri":"https://x/?a=1&refresh_token=r0-echoed&b=2","x"#,
        #"<a href="?a=1&refresh_token=r0-echoed&b=2">{"refresh_token":"r0-echoed"}"#,
    ])
    func `a refresh token in a form that a broken answer quotes isn't used`(body: String) async throws {
        do {
            _ = try await token(TransportResponse(body))
            Issue.record("a token")
        } catch let salvaged as SalvagedGrant {
            #expect(salvaged.grant.refreshToken == "r2" && body.contains(#"{"refresh_token":"r2""#))
        } catch {
            #expect(!body.contains(#"{"refresh_token":"r2""#))
        }
    }

    static let dated = ["Content-Type": "application/json", "Date": "Sat, 28 Nov 2026 11:00:00 GMT"]

    // Square and Zoho; Azure's IMDS and ADFS; Strava; Facebook. Zero is "never" with GoToSocial and Mailchimp.
    static let lifetimes: [(String, Duration)] = [
        (#""expires_in":3599"#, .seconds(3599)), (#""expires_in":"3599""#, .seconds(3599)),
        (#""expires_in":3599,"expires_on":"1795870799""#, .seconds(3599)), (#""expires_on":"1795870799""#, .seconds(3599)),
        (#""expires_at":1795870799"#, .seconds(3599)), (#""expires_at":1795870799000"#, .seconds(3599)),
        (#""expires_at":"2026-12-28T12:00:00Z""#, .seconds(30 * 86_400)),
        (#""expires_at":"2026-12-28T12:00:00.123Z""#, .seconds(30 * 86_400)),
        (#""expires_at":"2026-12-28T13:00:00+01:00""#, .seconds(30 * 86_400)),
        (#""expires":"2026-11-28T12:10:00+00:00""#, .seconds(600)), (#""expires":5183944"#, .seconds(5_183_944)),
        (#""expires":1795870799"#, .seconds(3599)), (#""expires":"1795870799""#, .seconds(3599)),
        (#""expires_in":3600000,"expires_in_sec":3600"#, .seconds(3600)), (#""expires_in":0"#, .seconds(300)),
        (#""expires_in":0,"expires_at":1795870799"#, .seconds(3599)), (#""expires_in":-1,"expires":0"#, .seconds(300)),
        (#""expires_at":0"#, .seconds(300)), (#""expires_at":3600"#, .seconds(300)), (#""expires_at":"""#, .seconds(300)),
        (#""expires_at":"2026-12-28T12:00:00""#, .seconds(300)), (#""expires_at":"soon""#, .seconds(300)),
        (#""expires_at":"2025-01-01T00:00:00Z""#, .seconds(300)), (#""expires_at":{}"#, .seconds(300)),
        (#""expires_at":"1e999""#, .seconds(300)), (#""expires_at":1e300"#, .seconds(315_360_000)),
        (#""expires_in":60,"expires_at":1795870799"#, .seconds(60)),
    ]

    @Test(arguments: lifetimes)
    func `a lifetime is found in each member where servers write it`(members: String, lifetime: Duration) async throws {
        let body = #"{"access_token":"a","token_type":"Bearer",\#(members)}"#
        #expect(try await token(TransportResponse(body)).lifetime == lifetime)
    }

    @Test func `an expiration date counts from the server's own Date`() async throws {
        let body = #"{"access_token":"a","token_type":"Bearer","expires_at":1795870800}"#
        #expect(try await token(TransportResponse(200, body, headers: Self.dated)).lifetime == .seconds(7200))
    }

    @Test(arguments: [3599, 5_183_944, 86_399, 1] as [Int64])
    func `a whole number of seconds is read and shown exactly`(seconds: Int64) async throws {
        let answer = TransportResponse(#"{"access_token":"a","token_type":"Bearer","expires_in":\#(seconds)}"#)
        let token = try await token(answer)
        #expect(token.lifetime == .seconds(seconds))
        #expect("\(token)" == "AccessToken(Bearer token, lifetime \(seconds).0 seconds, with a refresh token)")
    }

    // LinkedIn, Shopify, Mailchimp, Docker's registries.
    @Test(arguments: ["", #","token_type":"""#, #","token_type":null"#, #","token_type":"bearer ""#, #","token_type":" ""#])
    func `a token without a type is a bearer token`(members: String) async throws {
        #expect(try await token(TransportResponse(#"{"access_token":"a"\#(members)}"#)).tokenType == "Bearer")
    }

    @Test func `a client that accepts only another type refuses a token without a type`() async throws {
        let client = try client(TransportResponse(#"{"access_token":"a"}"#), acceptedTokenTypes: ["N_A"])
        let failure = try await #require(throws: OAuthError.self) { try await client.token(for: .clientCredentials()) }
        #expect("\(failure)".contains("token_type is missing"))
    }

    // Slack's bot and user; Apigee's BearerToken.
    @Test(arguments: [("BearerToken", "Bearer"), ("bot", "Bearer"), ("N_A", "N_A"), ("mac", "mac"), ("PoP", "PoP")])
    func `an accepted type name counts as Bearer, unless it has a meaning of its own`(
        name: String, type: String
    ) async throws {
        let answer = TransportResponse(#"{"access_token":"a","token_type":"\#(name) "}"#)
        #expect(try await token(answer, acceptedTokenTypes: [name]).tokenType == type)
        #expect(try await failure(answer).code == .unsupportedTokenType)
    }
}
