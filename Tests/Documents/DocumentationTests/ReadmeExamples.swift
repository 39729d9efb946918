import AccessTokens
import AccessTokensDispatch
import AccessTokensFiles
import AccessTokensOAuth
import AccessTokensTesting
import DataLoading
import Dispatch
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

// Every Swift block of the README, as it stands there, inside as much of a program as it takes to compile it.
// `ReadmeTests` holds the two to each other.

struct Reports {
    let tokens: TokenService
    let reportURL: URL
    let session: URLSession

    static func make(url: URL, secret: String) throws -> TokenService {
        let tokens = TokenService(
            loader: try ClientCredentialsLoader(tokenURL: url, clientID: "reports", clientSecret: secret, scope: "api.read"))

        return tokens
    }

    func fetchReport() async throws -> Data {
        for _ in 1...2 {
            let token = try await tokens.retrieveToken()
            var request = URLRequest(url: reportURL)
            request.setValue("Bearer \(token.value)", forHTTPHeaderField: "Authorization")
            let (data, response) = try await session.data(for: request)
            let status = (response as? HTTPURLResponse)?.statusCode
            if status == 200 { return data }
            guard status == 401 else { break }
            await tokens.invalidate(token)  // the second attempt gets a new one
        }
        throw URLError(.badServerResponse)
    }
}

func fetchToken() async throws -> AccessToken { AccessToken("fetched") }

actor NaiveTokenCache {
    private var token: AccessToken?

    func retrieveToken() async throws -> AccessToken {
        if let token, token.isValid { return token }
        let fresh = try await fetchToken()  // the actor lets the next caller in here
        token = fresh
        return fresh
    }
}

struct API: Sendable {
    func fetchToken(refreshToken: String?) async throws -> AccessToken { AccessToken("fetched", refreshToken: refreshToken) }
}

struct App {
    let api = API()
    func showSignIn() {}
    func showRetry(at date: Date?) {}

    func services(_ url: URL, _ path: String) throws -> [TokenService] {
        let tokens = TokenService { try await api.fetchToken(refreshToken: $0?.refreshToken) }
        let kept = TokenService(store: FileTokenStore(path: path), loader: try RefreshTokenLoader(tokenURL: url, clientID: "app"))
        return [tokens, kept]
    }

    func session(_ tokens: TokenService) async throws -> AccessToken? {
        await tokens.replace(with: AccessToken("…", lifetime: .seconds(3600), refreshToken: "…"))
        let change = await tokens.reset()  // the refresh tokens of change.discarded are yours to revoke
        return change.discarded.first
    }

    func errors(_ tokens: TokenService) async throws {
        do {
            _ = try await tokens.retrieveToken(within: .seconds(5))
        } catch let error as TokenServiceError where error.remedy == .signIn {
            showSignIn()
        } catch let error as TokenServiceError {
            showRetry(at: error.retryAt)
        }
    }
}

@Sendable func show(_ result: Result<AccessToken, any Error>) {}

func callbacks(_ tokens: TokenService) {
    let service = AccessTokenService(service: tokens, queue: .main)
    service.retrieveToken { result in show(result) }
}

func screens(_ tokens: TokenService, _ apiURL: URL, _ moviesURL: URL) async throws -> [Movie] {
    let factory = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [apiURL]))
    let loader = factory.makeLoader()  // one for each screen: its release cancels what it still loads
    let movies = try await loader.perform(Request(url: moviesURL), as: [Movie].self)
    return movies
}

struct Logger {
    func log(_ line: String) {}
}

func logging(_ tokens: TokenService, _ logger: Logger) async {
    for await event in tokens.events() { logger.log("\(event)") }
}

@Suite struct ReadmeExampleTests {
    @Test func `a refusal's body is never the report: a second attempt with a new token, then an error`() async throws {
        let server = SimulatedAuthorizationServer(clock: ManualClock())
        let tokens = TokenService(loader: server.loader)
        let host = try StubbedHost { arrival in
            switch (arrival.path, arrival.token) {
            case ("/busy", _): StubbedHost.Answer(status: 503, body: "busy")
            case ("/report", "access-2"): StubbedHost.Answer(body: "the report")
            default: StubbedHost.Answer(status: 401, body: "refused")
            }
        }
        func reports(_ path: String) -> Reports {
            Reports(tokens: tokens, reportURL: host.url.appending(path: path), session: host.session)
        }
        #expect(try await reports("report").fetchReport() == Data("the report".utf8))
        #expect(host.arrivals.map(\.token) == ["access-1", "access-2"])
        for path in ["busy", "elsewhere"] {
            await #expect(throws: URLError.self) { try await reports(path).fetchReport() }
        }
        #expect(host.arrivals.count == 5)
        #expect(tokens.cachedToken == nil, "both tokens were refused elsewhere")
    }

    @Test func `a screen that was refused asks for a new token`() async throws {
        let server = SimulatedAuthorizationServer(clock: ManualClock())
        let tokens = TokenService(loader: server.loader)
        let first = try await tokens.retrieveToken()
        server.revoke(first)
        await tokens.invalidate(first)
        #expect(server.accepts(try await tokens.retrieveToken()))
    }
}
