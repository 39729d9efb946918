import AccessTokensHTTP
import AccessTokens
import AccessTokensDispatch
import AccessTokensOAuth
import DataLoading
import Dispatch
import Foundation

// An app as Xcode creates one: everything is on the main actor by default, including loaders and closures.

/// A loader without any isolation annotation.
struct Login: TokenLoader {
    var user: String

    func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        AccessToken("\(user)'s", lifetime: .seconds(3_600))
    }
}

/// The articles' kind of loader, with a model that is decoded.
nonisolated final class Callback: AccessTokenLoader {
    func load(then handler: @escaping Handler) {
        handler(Result { try JSONDecoder().decode(Answer.self, from: Data(#"{"value": "decoded"}"#.utf8)).token })
    }
}

nonisolated struct Answer: Decodable {
    var value: String
    var token: AccessToken { AccessToken(value, lifetime: .seconds(60)) }
}

/// A type that conforms to a `Sendable` protocol isn't on the main actor by default; a store is an actor of its own.
actor Memory: TokenStore {
    private var token: StoredToken?
    func load() async throws -> StoredToken? { token }
    func save(_ token: StoredToken) async throws { self.token = token }
    func remove() async throws { token = nil }
}

struct Server: TokenTransport {
    func send(_ request: TransportRequest) async throws -> TransportResponse {
        TransportResponse(
            status: 200, headers: ["Content-Type": "application/json"],
            body: Data(#"{"access_token": "granted", "token_type": "Bearer", "expires_in": 3600}"#.utf8))
    }
}

final class Screen {
    private(set) var text = ""
    private(set) var events = 0
    private let tokens: TokenService
    private var watching: Task<Void, Never>?

    init(_ tokens: TokenService) {
        self.tokens = tokens
        let stream = tokens.events()
        watching = Task { [weak self] in
            for await _ in stream { self?.events += 1 }
        }
    }

    func appear() async {
        do {
            text = try await tokens.retrieveToken().value
        } catch let error as TokenServiceError where error.remedy == .signIn {
            text = "sign in"
        } catch {
            text = "\(error)"
        }
    }

    func appear(then shown: @escaping @Sendable @MainActor () -> Void) {
        AccessTokenService(service: tokens, queue: .main).retrieveToken { [weak self] result in
            MainActor.assumeIsolated {
                self?.text = (try? result.get())?.value ?? "none"
                shown()
            }
        }
    }

    func signOut() async { _ = await tokens.reset() }

    func close() { watching?.cancel() }
}

@main struct Screens {
    static func main() async throws {
        guard let url = URL(string: "http://127.0.0.1:1/movies") else { throw URLError(.badURL) }
        let services = [
            TokenService(store: Memory(), loader: Login(user: "Anna")),
            TokenService(loader: Callback().tokenLoader),
            TokenService { previous in AccessToken("closed over", lifetime: .seconds(60)) },
            TokenService(
                loader: try ClientCredentialsLoader(tokenURL: url, clientID: "app", clientSecret: "s", transport: Server())),
        ]
        for service in services {
            let screen = Screen(service)
            await screen.appear()
            await withCheckedContinuation { shown in screen.appear { shown.resume() } }
            print("main actor:", screen.text)
            await screen.signOut()
            screen.close()
        }
        let factory = DataLoaderFactory(tokens: try OriginTokens(services[0], for: [url]))
        do { _ = try await factory.makeLoader().perform(Request(url: url)) } catch { print("main actor: no server") }
    }
}
