import AccessTokens
import AccessTokensDispatch
import AccessTokensFiles
import AccessTokensOAuth
import DataLoading
import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

// Every Swift block of the README, as it stands there, inside as much of a program as it takes to compile it.
// `ReadmeTests` holds the two to each other.

/// The quick start, with the names that a program gives its own addresses.
func quickStart(tokenURL: URL, secret: String, apiURL: URL, reportURL: URL) async throws -> Data {
    let tokens = TokenService(
        loader: try ClientCredentialsLoader(tokenURL: tokenURL, clientID: "reports", clientSecret: secret, scope: "api.read"))
    let loader = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [apiURL])).makeLoader()
    let report = try await loader.perform(Request(url: reportURL)).body

    return report
}

func ownClient(_ tokens: TokenService, _ url: URL) async throws -> URLRequest {
    var request = URLRequest(url: url)
    let token = try await tokens.retrieveToken()
    request.setValue("Bearer \(token.value)", forHTTPHeaderField: "Authorization")

    let next = try await tokens.retrieveToken(insteadOf: token)
    request.setValue("Bearer \(next.value)", forHTTPHeaderField: "Authorization")
    return request
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

func logging(_ tokens: TokenService, _ logger: Logger) async {
    for await event in tokens.events() { logger.log(level: .info, "\(event)") }
}
