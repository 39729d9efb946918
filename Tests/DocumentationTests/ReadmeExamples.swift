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
        var request = URLRequest(url: reportURL)
        let token = try await tokens.retrieveToken()
        request.setValue("Bearer \(token.value)", forHTTPHeaderField: "Authorization")
        let (data, response) = try await session.data(for: request)
        if (response as? HTTPURLResponse)?.statusCode == 401 { await tokens.invalidate(token) }
        return data
    }
}

func staySignedIn(_ url: URL, _ path: String) throws -> TokenService {
    let tokens = TokenService(
        store: FileTokenStore(path: path),
        loader: try RefreshTokenLoader(tokenURL: url, clientID: "app"))
    return tokens
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

    func closure() -> TokenService {
        let tokens = TokenService { previous in
            try await api.fetchToken(refreshToken: previous?.refreshToken)
        }
        return tokens
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
    @Test func `a screen that was refused asks for a new token`() async throws {
        let server = SimulatedAuthorizationServer(clock: ManualClock())
        let tokens = TokenService(loader: server.loader)
        let first = try await tokens.retrieveToken()
        server.revoke(first)
        await tokens.invalidate(first)
        #expect(server.accepts(try await tokens.retrieveToken()))
    }
}
