import AccessTokensHTTP
import AccessTokens
import AccessTokensDispatch
import AccessTokensFiles
import AccessTokensKeys
import AccessTokensOAuth
import AccessTokensSharedFiles
import AccessTokensSharing
import AccessTokensTesting
import Dispatch
import Foundation
import Synchronization
import TestBudgets
import Testing

// The Swift blocks of the libraries' landing pages, unchanged, and run; the explorer's are in a file next to this one.

private struct Backend: Sendable {
    func fetchToken(refreshToken: String?) async throws -> AccessToken { AccessToken("fetched", refreshToken: refreshToken) }
    func fetchToken(for account: String, refreshToken: String?) async throws -> AccessToken {
        AccessToken("\(account)'s", refreshToken: "refresh")
    }

    func refuses(_ token: AccessToken) async throws -> Bool { true }
}

struct Network: Sendable {
    func fetch(_ path: String, then handler: @escaping @Sendable (Result<String, any Error>) -> Void) {
        DispatchQueue.global().async { handler(.success("token from \(path)")) }
    }
}

struct NetworkLoader: AccessTokenLoader {
    let network: Network

    func load(then handler: @escaping Handler) {
        network.fetch("/token") { result in
            handler(
                result.map { AccessToken($0, lifetime: .seconds(300)) })
        }
    }
}

private struct SigningKey: Sendable {
    func signature(for bytes: Data) async throws -> Data { bytes }
}

private struct Recorder: TokenTransport {
    let answer: TransportResponse

    @concurrent func send(
        _ request: TransportRequest
    ) async throws -> TransportResponse { answer }
}

@Suite(.inRealTime) struct `The landing pages` {
    @Test func `ask for a token before a request, and report when it is refused`() async throws {
        let api = Backend()

        let tokens = TokenService { previous in
            try await api.fetchToken(refreshToken: previous?.refreshToken)
        }

        let token = try await tokens.retrieveToken()
        if try await api.refuses(token) { await tokens.invalidate(token) }

        #expect(token.value == "fetched" && tokens.cachedToken == nil)
    }

    @Test func `show a second interface, for completion handlers`() async throws {
        let tokens = TokenService(loader: NetworkLoader(network: Network()).tokenLoader)
        let shown = Mutex<[String]>([])
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            @Sendable func show(_ result: Result<String, any Error>) {
                continuation.resume(with: result.map { value in shown.withLock { $0.append(value) } })
            }

            let service = AccessTokenService(service: tokens, queue: .main)
            service.retrieveToken { result in
                show(result.map(\.value))
            }
        }
        #expect(shown.withLock { $0 } == ["token from /token"])
        #expect(tokens.cachedToken?.value == "token from /token")
    }

    @Test func `give each account a service of its own`() async throws {
        let api = Backend(), account = "Anna"

        let services = TokenServices<String> { account, previous in
            try await api.fetchToken(
                for: account, refreshToken: previous?.refreshToken)
        }

        let token = try await services[account].retrieveToken()

        let signOut = await services.reset { $0 == account }

        #expect(token.value == "Anna's" && services[account].cachedToken == nil)
        #expect(signOut.changes[account]?.discarded.first?.refreshToken == "refresh")
    }

    @Test func `make loaders for programs and for users`() async throws {
        let url = try #require(URL(string: "https://id.example/token"))
        let secret = "s3cret"
        let tokenFromSignIn = AccessToken("signed in", lifetime: .seconds(3600), refreshToken: "refresh-1")

        let reports = TokenService(
            loader: try ClientCredentialsLoader(
                tokenURL: url, clientID: "reports", clientSecret: secret))

        let session = TokenService(
            loader: try RefreshTokenLoader(tokenURL: url, clientID: "app"))
        await session.replace(with: tokenFromSignIn)

        let key = SigningKey()
        let client = try OAuthClient(
            id: "reports",
            authentication: .privateKeyJWT(algorithm: "ES256") { bytes in
                try await key.signature(for: bytes)
            },
            tokenURL: url, issuer: "https://login.example")
        let exchange = TokenService(
            loader: GrantLoader(client, isRepeatable: true) { _ in
                .tokenExchange(
                    subject: try await reports.retrieveToken().value,
                    type: .accessToken, resource: ["https://api.example"])
            })

        #expect(exchange.cachedToken == nil)
        #expect(reports.cachedToken == nil && session.cachedToken == tokenFromSignIn)
    }

    @Test func `take a transport of the program's own`() async throws {
        let url = try #require(URL(string: "https://id.example/token"))
        let json = #"{"access_token":"over my wire","token_type":"Bearer","expires_in":60}"#
        let transport = Recorder(answer: TransportResponse(status: 200, body: Data(json.utf8)))
        let tokens = TokenService(
            loader: try ClientCredentialsLoader(tokenURL: url, clientID: "a", clientSecret: "b", transport: transport))
        #expect(try await tokens.retrieveToken().value == "over my wire")
    }

    @Test func `keep a token in a file`() async throws {
        let url = try #require(URL(string: "https://id.example/token"))
        let path = FileManager.default.temporaryDirectory.appending(path: "landing-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }

        let tokens = TokenService(
            store: FileTokenStore(path: path),
            loader: try RefreshTokenLoader(tokenURL: url, clientID: "tool"))
        #expect(tokens.cachedToken == nil)

        // The clock stands still, since a busy machine may need more than the 5 s that a store has.
        let patient = TokenService(
            store: FileTokenStore(path: path), environment: .init(clock: ManualClock()), loader: ScriptedLoader())
        await patient.replace(with: AccessToken("kept", lifetime: .seconds(3600)))
        #expect(try await FileTokenStore(path: path).load()?.token.value == "kept")
    }

    @Test func `share a sign-in in a file`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "landing-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "grant").path, loader = ScriptedLoader()

        let tokens = TokenService(
            sharedStore: SharedFileTokenStore(path: path), loader: loader)
        #expect(tokens.cachedToken == nil)
    }
}
