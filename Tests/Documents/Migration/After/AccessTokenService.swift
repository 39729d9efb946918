import AccessTokens
import AccessTokensDispatch
import Dispatch

typealias AccessToken = AccessTokens.AccessToken

/// The old service's name and methods, for screens, with handlers that run on the main actor.
@MainActor final class AccessTokenService {
    private let callbacks: AccessTokensDispatch.AccessTokenService

    init(tokens: TokenService) {
        callbacks = AccessTokensDispatch.AccessTokenService(service: tokens, queue: .main)
    }

    func retrieveToken(then handler: @escaping @MainActor (Result<AccessToken, any Error>) -> Void) {
        callbacks.retrieveToken { result in
            MainActor.assumeIsolated { handler(result) }
        }
    }

    func signOut(then handler: @escaping @MainActor () -> Void) {
        callbacks.reset { _ in
            MainActor.assumeIsolated { handler() }
        }
    }
}
