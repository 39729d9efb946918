import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

/// The client's credentials, which are obtained for each request.
@Suite(.inRealTime)
struct CredentialsTests {
    let transport = ScriptedTransport { .token() }

    func client(_ authentication: ClientAuthentication, issuer: String? = "https://as.example") throws -> OAuthClient {
        try OAuthClient(
            id: "me", authentication: authentication, tokenURL: #require(URL(string: "https://as.example/token")), issuer: issuer,
            transport: transport)
    }

    var headers: [String?] { transport.requests.map { $0.headers["Authorization"] } }

    @Test func `a replaced secret is used from the next load on`() async throws {
        let secret = Lock(1)
        let next: @Sendable @concurrent () async throws -> String = {
            secret.withLock { secret in
                secret += 1
                return "s\(secret)"
            }
        }
        for method in [ClientAuthentication.clientSecretBasic(next), .clientSecretPost(next)] {
            let loader = try ClientCredentialsLoader(client(method))
            for _ in 1...2 { _ = try await loader.loadToken(replacing: nil) }
        }
        let credentials = ["s2", "s3"].map { "Basic \(Data("me:\($0)".utf8).base64EncodedString())" }
        #expect(headers == credentials + [nil, nil])
        let forms = transport.requests.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(forms.map { $0.hasSuffix("client_secret=s4") } == [false, false, true, false])
        #expect(forms.last?.hasSuffix("client_secret=s5") == true)
    }

    struct Broken: Error { let file = "s3cr3t" }

    @Test func `if a secret can't be read, nothing is sent or shown`() async throws {
        for make in [{ throw Broken() }, { "" }] as [@Sendable @concurrent () async throws -> String] {
            for method in [ClientAuthentication.clientSecretBasic(make), .clientSecretPost(make), .assertion(make)] {
                let failure = try await ClientCredentialsLoader(client(method)).failure()
                #expect(failure.code == .credentialsUnavailable && failure.remedy == .retry && !failure.mayBeUnderWay)
                #expect(!texts(failure).contains("s3cr3t"), "\(failure)")
            }
        }
        #expect(transport.requests.isEmpty)
    }

    @Test func `an error with a remedy that a closure throws is thrown unchanged`() async throws {
        let client = try client(.publicClient)
        let loader = GrantLoader(client, isRepeatable: false) { _ in throw OAuthError.signInNeeded }
        let failure = try await loader.failure()
        #expect(failure.code == .notSignedIn && failure.remedy == .signIn)
        let cancelled = GrantLoader(client, isRepeatable: false) { _ in throw CancellationError() }
        await #expect(throws: CancellationError.self) { try await cancelled.loadToken(replacing: nil) }
        let broken = GrantLoader(client, isRepeatable: false) { _ in throw Broken() }
        let error = try await broken.failure()
        #expect(error.code == .credentialsUnavailable && error.underlying is Broken && !texts(error).contains("s3cr3t"))
    }

    // RFC 7523 §3: issuer and subject are the client, the audience is the server's issuer, an expiry, an id.
    @Test func `an assertion has the required claims, and an id of its own`() async throws {
        let signed = Lock<[Data]>([])
        let key = ClientAuthentication.privateKeyJWT(
            algorithm: "ES256", keyID: "16", wallClock: { Date(timeIntervalSince1970: 1_300_819_380) }
        ) { bytes in
            signed.withLock { $0.append(bytes) }
            return Data([0xFB, 0xFF, 0xFE])
        }
        let loader = try ClientCredentialsLoader(client(key))
        for _ in 1...2 { _ = try await loader.loadToken(replacing: nil) }
        var ids: Set<String> = []
        for (request, bytes) in zip(transport.requests, signed.withLock { $0 }) {
            let form = String(decoding: request.body, as: UTF8.self)
            let sent = try #require(form.split(separator: "client_assertion=").last)
            #expect(sent == "\(String(decoding: bytes, as: UTF8.self)).-__-")
            let parts = sent.split(separator: ".").map(Self.decoded)
            #expect(String(decoding: parts[0], as: UTF8.self) == #"{"alg":"ES256","kid":"16","typ":"JWT"}"#)
            struct Claims: Decodable {
                let iss, sub, aud, jti: String
                let iat, exp: Int
            }
            let claims = try JSONDecoder().decode(Claims.self, from: parts[1])
            #expect([claims.iss, claims.sub, claims.aud] == ["me", "me", "https://as.example"])
            #expect(claims.iat == 1_300_819_380 && claims.exp == 1_300_819_440 && claims.jti.utf8.count == 22)
            ids.insert(claims.jti)
        }
        #expect(ids.count == 2)
    }

    static func decoded(_ part: Substring) -> Data {
        let text = part.replacing("-", with: "+").replacing("_", with: "/")
        return Data(base64Encoded: text + String(repeating: "=", count: (4 - text.count % 4) % 4)) ?? Data()
    }

    @Test(arguments: [nil, ""])
    func `an assertion needs an issuer or an explicit audience, so no audience is guessed`(issuer: String?) throws {
        let error = try #require(throws: OAuthError.self) {
            try client(.privateKeyJWT(algorithm: "ES256") { _ in Data() }, issuer: issuer)
        }
        #expect(error.code == .invalidConfiguration && "\(error)".contains("issuer"))
        _ = try client(.assertion { "made elsewhere" }, issuer: issuer)
    }

    @Test(arguments: [Double.nan, .infinity, 1e15])
    func `with an invalid wall clock no assertion is made, and nothing is sent`(time: Double) async throws {
        let key = ClientAuthentication.privateKeyJWT(
            algorithm: "ES256", audience: "https://as.example/token", wallClock: { Date(timeIntervalSince1970: time) }
        ) { _ in Data() }
        let error = await #expect(throws: OAuthError.self) {
            try await ClientCredentialsLoader(client(key)).loadToken(replacing: nil)
        }
        #expect(error?.code == .credentialsUnavailable && error?.description.contains("wall clock") == true)
        #expect(transport.requests.isEmpty)
    }

    // For example, of a variable that isn't set.
    @Test(arguments: [nil, "https://as.example"])
    func `an empty audience is refused, whatever the issuer`(issuer: String?) throws {
        let error = try #require(throws: OAuthError.self) {
            try client(.privateKeyJWT(algorithm: "ES256", audience: "") { _ in Data() }, issuer: issuer)
        }
        #expect(error.code == .invalidConfiguration && "\(error)".contains("audience"))
    }

    @Test(arguments: [nil, "https://as.example"])
    func `an audience that the program gives is used, whatever the issuer`(issuer: String?) async throws {
        let key = ClientAuthentication.privateKeyJWT(algorithm: "ES256", audience: "https://as.example/token") { _ in Data() }
        _ = try await ClientCredentialsLoader(client(key, issuer: issuer)).loadToken(replacing: nil)
        let form = String(decoding: try #require(transport.requests.last).body, as: UTF8.self)
        let claims = Self.decoded(try #require(form.split(separator: "client_assertion=").last).split(separator: ".")[1])
        #expect(String(decoding: claims, as: UTF8.self).contains(#""aud":"https://as.example/token""#))
    }

    // RFC 7523 §3: an assertion has a time, and servers compare it with their own.
    @Test(
        arguments: [
            (-7_200, true), (-90, true), (-29, false), (0, false), (29, false), (90, true), (7_200, true),
        ] as [(TimeInterval, Bool)], [400, 401])
    func `the error of a refused assertion says if the clocks differ`(skew: (ahead: TimeInterval, isTold: Bool), status: Int)
        async throws
    {
        let now = Date(timeIntervalSince1970: 784_111_777 + skew.ahead)
        let made = ClientAuthentication.privateKeyJWT(algorithm: "ES256", wallClock: { now }) { _ in Data([1]) }
        let url = try #require(URL(string: "https://as.example/token"))
        let grants: [(ClientAuthentication, Grant)] = [
            (made, .refreshToken("r")), (.assertion { _, _ in "made" }, .clientCredentials()),
            (.assertion { "read" }, .clientCredentials()), (.publicClient, .jwtBearer("a")),
        ]
        for (authentication, grant) in grants {
            for code in ["invalid_client", "invalid_grant", "unauthorized_client"] {
                let answer = TransportResponse(
                    status, #"{"error":"\#(code)"}"#, headers: ["Date": "Sun, 06 Nov 1994 08:49:37 GMT"])
                let client = try OAuthClient(
                    id: "me", authentication: authentication, tokenURL: url, issuer: "https://as.example",
                    transport: ScriptedTransport { answer }, wallClock: { now })
                let failure = try await #require(throws: OAuthError.self) { try await client.token(for: grant) }
                let note = "Correct this machine's clock, or the server's: the assertion was sent at"
                #expect("\(failure)".contains(note) == skew.isTold, "\(failure)")
                #expect("\(failure)".contains("the server's Date is 1994-11-06T08:49:37Z") == skew.isTold)
            }
        }
        let secret = try OAuthClient(
            id: "me", authentication: .clientSecretPost("s3cr3t"), tokenURL: url,
            transport: ScriptedTransport {
                TransportResponse(401, #"{"error":"invalid_client"}"#, headers: ["Date": "Sun, 06 Nov 1994 08:49:37 GMT"])
            }, wallClock: { now })
        #expect(try await !"\(ClientCredentialsLoader(secret).failure())".contains("clock"), "a secret has no time")
    }
}
