import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Synchronization
import TestBudgets
import Testing

// The Swift blocks of `ChoosingAGrant`, unchanged; the sign-ins are run.

func workloadTokens(tokenURL: URL) throws -> TokenService {
    let file = Credential.file(path: "/var/run/secrets/tokens/identity")
    let client = try OAuthClient(id: "reports", tokenURL: tokenURL)
    return TokenService(
        loader: GrantLoader(client, isRepeatable: true) { _ in
            .tokenExchange(
                subject: try await file.read(), type: .jwt,
                audience: ["https://api.example"], scope: "reports.read")
        })
}

func isAccepted(id: String, secret: String, at url: URL) async throws
    -> Bool
{
    do {
        let client = try OAuthClient(
            id: id, authentication: .clientSecretBasic(secret),
            tokenURL: url)
        _ = try await client.token(for: .clientCredentials())
        return true
    } catch let error as OAuthError
        where error.code == .refused
        && error.remedy == .clientRegistration
    {
        return false
    }
}

func federatedTokens(tokenURL: URL) throws -> TokenService {
    let file = Credential.file(path: "/var/run/secrets/tokens/identity")
    let client = try OAuthClient(
        id: "reports", authentication: .assertion(file.read),
        tokenURL: tokenURL)
    return TokenService(loader: try ClientCredentialsLoader(client))
}

func signedTokens(
    tokenURL: URL, sign: @escaping @Sendable (Data) async throws -> Data
) throws -> TokenService {
    let client = try OAuthClient(
        id: "reports",
        authentication: .privateKeyJWT(
            algorithm: "ES256", keyID: "2026-11", sign: sign),
        tokenURL: tokenURL, issuer: "https://login.example.com")
    return TokenService(loader: try ClientCredentialsLoader(client))
}

func actionsTokens(
    tokenURL: URL, identityURL: URL, requestToken: String,
    provider: String
) throws -> TokenService {
    let identity = try Credential.url(
        identityURL.appending(
            queryItems: [URLQueryItem(name: "audience", value: provider)]
        ),
        headers: ["Authorization": "bearer \(requestToken)"],
        member: "value")
    let client = try OAuthClient(
        id: "deploy", authentication: .unidentified,
        tokenURL: tokenURL)
    return TokenService(
        loader: GrantLoader(client, isRepeatable: true) { _ in
            .tokenExchange(
                subject: try await identity.read(), type: .jwt,
                requestedType: .accessToken, audience: [provider],
                scope: "https://www.googleapis.com/auth/cloud-platform")
        })
}

private struct Tool {
    func signIn(
        to tokens: TokenService, _ client: OAuthClient, at url: URL,
        show: (String) -> Void
    ) async throws {
        let signIn = try await DeviceSignIn(
            client, deviceAuthorizationURL: url, scope: "api")
        show("Open \(signIn.verificationURI), enter \(signIn.userCode)")
        await tokens.replace(with: try await signIn.token().token)
    }
}

private struct App {
    func signIn(
        to tokens: TokenService, _ client: OAuthClient, at url: URL,
        open: (URL) async throws -> URL
    ) async throws {
        let request = try SignInRequest(
            client, authorizationURL: url,
            redirectURI: "com.example.app:/signed-in", scope: "api")
        let grant = try request.grant(from: try await open(request.url))
        do {
            await tokens.replace(
                with: try await client.token(for: grant).token)
        } catch let salvaged as SalvagedGrant {
            await tokens.replace(with: salvaged.grant)
        }
    }
}

struct WrappedAnswer: Decodable {
    struct Token: Decodable {
        let value: String, minutes: Int, next: String?
    }
    let token: Token
}

func wrappingClient(tokenURL url: URL) throws -> OAuthClient {
    try OAuthClient(
        id: "app", tokenURL: url,
        additionalHeaders: ["User-Agent": "app/1.0"],
        reading: { members, status in
            if members["problem"] == "session over" {
                return .refused("invalid_grant")
            }
            guard
                let token = try? members.decoded(as: WrappedAnswer.self)
                    .token
            else {
                return .asUsual
            }
            return .token(
                AccessToken(
                    token.value, lifetime: .seconds(token.minutes * 60),
                    refreshToken: token.next))
        })
}

@Suite(.inRealTime) struct `Choosing a grant` {
    /// Answers each request with the next body.
    private final class Answers: TokenTransport {
        private let bodies: Mutex<[String]>

        init(_ bodies: String...) { self.bodies = Mutex(bodies) }

        @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
            TransportResponse(status: 200, body: Data(bodies.withLock { $0.isEmpty ? "" : $0.removeFirst() }.utf8))
        }
    }

    private func client(_ transport: any TokenTransport) throws -> OAuthClient {
        try OAuthClient(id: "app", tokenURL: #require(URL(string: "https://id.example/token")), transport: transport)
    }

    @Test func `an app signs in, and keeps the refresh token of an unusable answer`() async throws {
        let url = try #require(URL(string: "https://id.example/authorize"))
        for (body, kept) in [
            (#"{"access_token":"a","token_type":"Bearer","refresh_token":"r"}"#, "a"),
            (#"{"access_token":"a","token_type":"odd","refresh_token":"r"}"#, nil as String?),
        ] {
            let tokens = TokenService(environment: .init(clock: ManualClock()), loader: ScriptedLoader())
            try await App().signIn(to: tokens, client(Answers(body)), at: url) { url in
                let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems ?? []
                let state = items.first { $0.name == "state" }?.value ?? ""
                return try #require(URL(string: "com.example.app:/signed-in?code=c&state=\(state)"))
            }
            #expect(tokens.cachedToken?.value == kept)
            #expect(await tokens.reset().discarded.first?.refreshToken == "r")
        }
    }

    @Test func `a tool shows the user's code and where to enter it`() async throws {
        let url = try #require(URL(string: "https://id.example/device"))
        // The codes have no time left, so the test doesn't wait.
        let codes = #"{"device_code":"d","user_code":"WDJB","verification_uri":"https://v","expires_in":0}"#
        let tokens = TokenService(loader: ScriptedLoader())
        var shown = ""
        let error = await #expect(throws: OAuthError.self) {
            try await Tool().signIn(to: tokens, client(Answers(codes)), at: url) { shown = $0 }
        }
        #expect(shown == "Open https://v, enter WDJB" && error?.code == .signInExpired)
    }

    @Test func `a server without its credential file sends nothing`() async throws {
        let url = try #require(URL(string: "https://id.example/token"))
        for tokens in [try workloadTokens(tokenURL: url), try federatedTokens(tokenURL: url)] {
            let error = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
            #expect((error?.underlying as? OAuthError)?.code == .credentialsUnavailable)
        }
    }
}
