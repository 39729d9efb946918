import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// A refresh token's own expiration, which some servers send and no specification defines.
final class RefreshTokenExpirationTests: Sendable {
    static let start = Date(timeIntervalSince1970: 1_000_000_000)
    static let known = start.addingTimeInterval(60)

    let time = Lock(start)

    func client(_ transport: ScriptedTransport) throws -> OAuthClient {
        try OAuthClient(
            id: "app", tokenURL: #require(URL(string: "https://as.example/token")), transport: transport,
            wallClock: { self.time.withLock { $0 } })
    }

    /// Refreshes with `r1`, which expires 60 s after the start, and returns the new token's seconds from the start.
    func renew(_ members: String, after seconds: TimeInterval = 0) async throws -> TimeInterval? {
        time.withLock { $0 += seconds }
        let client = try client(ScriptedTransport { .token(members) })
        let previous = AccessToken("old", refreshToken: "r1", refreshTokenExpiration: Self.known)
        let token = try await RefreshTokenLoader(client).loadToken(replacing: previous)
        return token.refreshTokenExpiration?.timeIntervalSince(Self.start)
    }

    // Google's, GitHub's and Microsoft's name; Keycloak's.
    @Test(arguments: ["refresh_token_expires_in", "refresh_expires_in"], [("100", 100.0), (#""100""#, 100), ("1.5", 1.5)])
    func `a refresh token's expiration counts from the answer`(name: String, life: (value: String, seconds: TimeInterval))
        async throws
    {
        let client = try client(
            ScriptedTransport {
                self.time.withLock { $0 += 7 }
                return .token(#""refresh_token":"r","\#(name)":\#(life.value)"#)
            })
        for grant in [Grant.authorizationCode("c", verifier: nil), .refreshToken("r0"), .tokenExchange(subject: "s", type: .jwt)]
        {
            let token = try await client.token(for: grant).token
            #expect(token.refreshTokenExpiration == time.withLock { $0 }.addingTimeInterval(life.seconds))
        }
    }

    @Test func `if the answer has two names for the expiration, the first readable one counts`() async throws {
        #expect(try await renew(#""refresh_token_expires_in":5,"refresh_expires_in":6"#) == 5)
        #expect(try await renew(#""refresh_token_expires_in":"soon","refresh_expires_in":6"#) == 6)
    }

    // Keycloak's offline tokens have a zero; others say “never” with a large number. An invalid value doesn't invalidate the
    // token.
    @Test(arguments: ["0", "315360000", "1e300", "-1", #""x""#, "{}", "null", "NaN"])
    func `a new refresh token without an expiration never expires`(value: String) async throws {
        #expect(try await renew(#""refresh_token":"r2","refresh_token_expires_in":\#(value)"#) == nil)
        #expect(try await renew(#""refresh_token":"r2""#) == nil)
    }

    @Test(arguments: ["", #","refresh_token":"r1""#, #","refresh_token":null"#])
    func `an unchanged refresh token keeps its expiration, unless the answer has another`(members: String) async throws {
        #expect(try await renew(#""x":1"# + members, after: 30) == 60)
        #expect(try await renew(#""refresh_expires_in":-1"# + members) == 60)
        #expect(try await renew(#""refresh_expires_in":100"# + members) == 130)
        #expect(try await renew(#""refresh_expires_in":0"# + members) == nil)
    }

    @Test func `a different refresh token doesn't inherit the last one's expiration`() async throws {
        let client = try client(ScriptedTransport { .token() })
        let previous = AccessToken("old", refreshToken: "r1", refreshTokenExpiration: .distantPast)
        let token = try await client.token(for: .refreshToken("other"), replacing: previous).token
        #expect(token.refreshToken == "other" && token.refreshTokenExpiration == nil)
    }

    @Test func `a token without a refresh token has no refresh token expiration`() async throws {
        let client = try client(ScriptedTransport { .token(#""refresh_expires_in":100"#) })
        #expect(try await client.token(for: .clientCredentials()).token.refreshTokenExpiration == nil)
    }

    @Test func `a refresh token in an unusable answer keeps its expiration, and one in a damaged answer has none`() async throws {
        for (end, seconds) in [("}", 1800.0), ("", nil)] {
            let body = #"{"refresh_token":"r2","refresh_expires_in":1800"# + end
            let loader = try RefreshTokenLoader(client(ScriptedTransport { TransportResponse(body) }))
            let salvaged = try await #require(throws: SalvagedGrant.self) {
                try await loader.loadToken(
                    replacing: AccessToken("old", refreshToken: "r1", refreshTokenExpiration: Self.known))
            }
            #expect(salvaged.grant.refreshToken == "r2")
            #expect(salvaged.grant.refreshTokenExpiration?.timeIntervalSince(Self.start) == seconds)
        }
    }

    @Test func `53: a refresh token is presented whatever the clock says of its end`() async throws {
        #expect(try await renew(#""refresh_expires_in":100"#, after: 59.5) == 159.5)
        for seconds in [60, 61, 1e9, -1e9] {
            time.withLock { $0 = Self.start }
            #expect(try await renew(#""refresh_expires_in":100"#, after: seconds) == seconds + 100)
        }
    }

    @Test func `a refusal's error says if the refresh token had expired by this machine's clock`() async throws {
        let transport = ScriptedTransport { TransportResponse(400, #"{"error":"invalid_grant"}"#) }
        let loader = try RefreshTokenLoader(client(transport))
        let previous = AccessToken("old", refreshToken: "r1-xyzzy", refreshTokenExpiration: Self.known)
        for (seconds, isOver) in [(59.0, false), (60, true), (1e9, true)] {
            time.withLock { $0 = Self.start + seconds }
            let failure = try await loader.failure(replacing: previous)
            #expect(failure.code == .refused && failure.remedy == .signIn)
            let note = "By this machine's clock the refresh token expired at 2001-09-09T01:47:40Z."
            #expect("\(failure)".contains(note) == isOver, "\(failure)")
            #expect(!texts(failure).contains("xyzzy"))
        }
        #expect(transport.requests.count == 3)
    }

    @Test(arguments: [-1e300, -1e15, .nan, .infinity, -.infinity])
    func `an extreme date crashes nothing`(seconds: TimeInterval) async throws {
        let odd = Date(timeIntervalSinceReferenceDate: seconds)
        let loader = try RefreshTokenLoader(client(ScriptedTransport { .token(#""refresh_expires_in":1"#) }))
        let token = AccessToken("old", refreshToken: "r1", refreshTokenExpiration: odd)
        // A date that isn't a number counts as none.
        #expect((token.refreshTokenExpiration == odd) == seconds.isFinite)
        _ = try await loader.loadToken(replacing: token)
        time.withLock { $0 = odd }
        guard seconds != .infinity else { return }
        _ = try await loader.loadToken(replacing: AccessToken("old", refreshToken: "r1", refreshTokenExpiration: Self.known))
    }

    @Test func `a refresh token's expiration survives restarts of the program`() async throws {
        let transport = ScriptedTransport { .token(#""expires_in":10,"refresh_token":"r2","refresh_expires_in":100"#) }
        let store = InMemoryTokenStore(
            StoredToken(AccessToken("", lifetime: .zero, refreshToken: "r1"), received: Self.start))
        let environment = TokenService.Environment(clock: ManualClock(), wallClock: { self.time.withLock { $0 } })
        for seconds in [0.0, 50, 200] {
            time.withLock { $0 += seconds }
            let tokens = try TokenService(
                store: store, environment: environment, loader: RefreshTokenLoader(client(transport)))
            #expect(try await tokens.retrieveToken().refreshTokenExpiration == time.withLock { $0 + 100 })
        }
        #expect(transport.requests.count == 3)
    }

    /// How far a clock is from the true time at the first answer, at the second one and after.
    static let steps: [(TimeInterval, TimeInterval)] = [
        (0, 0), (-10_800, 0), (10_800, 0), (0, 3_600), (0, -3_600), (-10_800, 10_800), (10_800, -10_800), (0, 1e9), (1e9, 0),
        (-1e9, 0), (0, -1e9), (-1e9, 1e9),
    ]

    // The server's refresh tokens live for 30 minutes, the access tokens for 10 s.
    @Test(arguments: steps, [false, true])
    func `53: a clock that steps ends no session that the server keeps`(
        clock: (before: TimeInterval, after: TimeInterval), restarts: Bool
    ) async throws {
        let transport = ScriptedTransport { .token(#""expires_in":10,"refresh_token":"r2","refresh_expires_in":1800"#) }
        let store = InMemoryTokenStore(
            StoredToken(AccessToken("", lifetime: .zero, refreshToken: "r1"), received: Self.start))
        let manual = ManualClock()
        let environment = TokenService.Environment(clock: manual, wallClock: { self.time.withLock { $0 } })
        func service() throws -> TokenService {
            try TokenService(store: store, environment: environment, loader: RefreshTokenLoader(client(transport)))
        }
        var tokens = try service()
        time.withLock { $0 = Self.start + clock.before }
        _ = try await tokens.retrieveToken()
        manual.advance(by: .seconds(20))
        time.withLock { $0 = Self.start + clock.after + 20 }
        if restarts { tokens = try service() }
        _ = try await tokens.retrieveToken()
        manual.advance(by: .seconds(20))
        time.withLock { $0 = Self.start + 40 }
        _ = try await tokens.retrieveToken()
    }

    @Test func `an expired refresh token costs one refusal`() async throws {
        let transport = ScriptedTransport { TransportResponse(400, #"{"error":"invalid_grant"}"#) }
        let manual = ManualClock()
        let tokens = try TokenService(
            environment: .init(clock: manual, wallClock: { self.time.withLock { $0 } }),
            loader: RefreshTokenLoader(client(transport)))
        await tokens.replace(with: AccessToken("", lifetime: .zero, refreshToken: "r1", refreshTokenExpiration: Self.known))
        time.withLock { $0 += 3_600 }
        for _ in 1...100 {
            let error = try await #require(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
            #expect(error.remedy == .signIn)
            manual.advance(by: .seconds(600))
        }
        #expect(transport.requests.count == 1)
    }
}
