import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

/// Assertions, codes, verifiers, subject tokens: hidden like client secrets, whichever code writes the text.
@Suite(.inRealTime)
struct DoorSecretsTests {
    static let secret = "s3cr3t+/: ü"
    /// A verifier has only letters, digits and `-._~`.
    static let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

    /// Everything secret that an exchange can carry, alone in its form.
    static var exchanges: [(name: String, grant: Grant, authentication: ClientAuthentication)] {
        var form: Form = [:]
        form.add("x", secret: secret)
        return [
            ("code", .authorizationCode(secret, verifier: nil), .publicClient),
            ("refresh token", .refreshToken(secret), .publicClient),
            ("subject token", .tokenExchange(subject: secret, type: .jwt), .publicClient),
            ("actor token", .tokenExchange(subject: "sub", type: .jwt, actor: (secret, .jwt)), .publicClient),
            ("assertion", .jwtBearer(secret), .publicClient),
            ("device code", Grant(type: "urn:ietf:params:oauth:grant-type:device_code", ["device_code": secret]), .publicClient),
            ("password", Grant(type: "password", ["password": secret]), .publicClient),
            ("secret of the program's own", Grant(type: "x", form), .publicClient),
            ("client assertion", .clientCredentials(), .assertion { secret }),
            ("client assertion made for the server", .clientCredentials(), .assertion { _, _ in secret }),
            ("asked secret, basic", .clientCredentials(), .clientSecretBasic { secret }),
            ("asked secret, post", .clientCredentials(), .clientSecretPost { secret }),
        ]
    }

    func client(_ authentication: ClientAuthentication, _ answer: TransportResponse) throws -> OAuthClient {
        try OAuthClient(
            id: "me", authentication: authentication, tokenURL: #require(URL(string: "https://as.example/token")),
            issuer: "https://as.example", transport: ScriptedTransport { answer })
    }

    @Test(arguments: SecretsTests.spellings.filter { !$0.contains("me:") } + [secret])
    func `18: every secret of an exchange is hidden in every spelling`(echo: String) async throws {
        // Base64 of "me:secret" is a spelling only of a client's secret, which SecretsTests covers.
        guard Data(base64Encoded: echo).map({ !$0.starts(with: Data("me:".utf8)) }) ?? true,
            !echo.hasPrefix("bWU6")
        else { return }
        for status in [200, 400, 503] {
            let answer = TransportResponse(status, #"{"error":"e \#(echo)","error_description":"wrong: '\#(echo)', id me"}"#)
            for (name, grant, authentication) in Self.exchanges {
                let failure = try await #require(throws: OAuthError.self) {
                    try await client(authentication, answer).token(for: grant)
                }
                let shown = try #require(failure.serverDescription)
                #expect(
                    shown.contains("[hidden]") && shown.hasPrefix("wrong: '") && shown.hasSuffix("', id me"), "\(name): \(shown)")
                let everything = texts(failure) + texts(failure.error as Any)
                #expect(!everything.contains("3cr3t") && !everything.contains(echo.prefix(10)), "\(name)")
            }
        }
    }

    @Test func `18: a verifier and each part of a signed token are hidden`() async throws {
        let jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm5hIn0longer.lowercasesignaturewithoutdigits"
        for echo in [Self.verifier, "eyJzdWIiOiJhbm5hIn0longer", "lowercasesignaturewithoutdigits", jwt] {
            let answer = TransportResponse(400, #"{"error":"e","error_description":"got \#(echo)"}"#)
            var grant = Grant.authorizationCode("c", verifier: Self.verifier)
            grant.form.add("x", secret: jwt)
            let failure = try await #require(throws: OAuthError.self) {
                try await client(.publicClient, answer).token(for: grant)
            }
            #expect(failure.serverDescription == "got [hidden]")
        }
    }

    @Test func `18: no text of a client, grant, form, loader or event shows the secrets that it carries`() async throws {
        for (name, grant, authentication) in Self.exchanges {
            let answer = TransportResponse(
                #"{"access_token":"a-xyzzy","token_type":"Bearer","id_token":"i-xyzzy","refresh_token":"r-xyzzy"}"#)
            let client = try client(authentication, answer)
            let got = try await client.token(for: grant)
            #expect(got.members["id_token"] == "i-xyzzy" && got.token.value == "a-xyzzy", "\(name)")
            let loader = GrantLoader(client, isRepeatable: false) { _ in grant }
            let everything =
                texts(client) + texts(grant) + texts(grant.form) + texts(got) + texts(got.members) + texts(loader)
                + texts(authentication)
            #expect(!everything.contains("3cr3t") && !everything.contains("xyzzy"), "\(name): \(everything)")
            let refusing = try self.client(authentication, TransportResponse(400, #"{"error":"\#(Self.secret)"}"#))
            let service = TokenService(
                environment: .init(clock: ManualClock()), loader: GrantLoader(refusing, isRepeatable: false) { _ in grant })
            var events = service.events().makeAsyncIterator()
            let error = try await #require(throws: TokenServiceError.self) { try await service.retrieveToken() }
            while let event = await events.next() {
                #expect(!texts(event).contains("3cr3t"), "\(name)")
                if event.name == .loadFailed { break }
            }
            #expect(!texts(error).contains("3cr3t"), "\(name)")
        }
    }

    @Test func `a member of an answer is found by its name, and the whole answer can be decoded`() async throws {
        struct Answer: Decodable { let id_token: String, custom: [Int] }
        let answer = TransportResponse.token(#""id_token":"i","custom":[1,2],"empty":"","null":null,"twice":"a","twice":"b""#)
        let members = try await client(.publicClient, answer).token(for: .refreshToken("r")).members
        #expect(members["id_token"] == "i" && members["custom"] == nil && members["nothing"] == nil)
        #expect(members["empty"] == nil && members["null"] == nil && members["twice"] == nil)
        #expect(try members.decoded(as: Answer.self).custom == [1, 2])
        struct Other: Decodable { let absent: String }
        let error = try #require(throws: OAuthError.self) { try members.decoded(as: Other.self) }
        #expect(error.code == .unreadableResponse)
    }
}
