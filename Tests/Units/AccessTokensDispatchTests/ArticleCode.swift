import AccessTokens
import AccessTokensDispatch
import Dispatch

// Code like that written for the articles' API, in our own words. It must keep compiling; only the second parameter of `Result`
// and `Sendable` may differ.

final class AccessTokenLoaderMock: AccessTokenLoader {
    let token: AccessToken

    init(token: AccessToken) {
        self.token = token
    }

    func load(then handler: @escaping @Sendable (Result<AccessToken, any Error>) -> Void) {
        DispatchQueue.global().async { [token] in
            handler(.success(token))
        }
    }
}

final class ProfileScreen: Sendable {
    private let tokenService: AccessTokenService

    init(tokenService: AccessTokenService) {
        self.tokenService = tokenService
    }

    func loadProfile(then handler: @escaping @Sendable (String) -> Void) {
        tokenService.retrieveToken { result in
            switch result {
            case .success(let token):
                handler(token.isValid ? "profile loaded" : "token expired")
            case .failure(let error):
                handler("failed: \(error)")
            }
        }
    }
}

func makeServices() -> [AccessTokenService] {
    let loader = AccessTokenLoaderMock(token: AccessToken("abc", lifetime: .seconds(3600)))
    let queue = DispatchQueue(label: "AccessTokenServiceTests")
    return [
        AccessTokenService(loader: loader),
        AccessTokenService(loader: loader, queue: queue),
        AccessTokenService(loader: loader, queue: .main),
        AccessTokenService(loader: loader, queue: .init(label: "AccessToken")),
    ]
}

/// The method, passed on as a function.
func retrieval(of service: AccessTokenService) -> (@escaping AccessTokenService.Handler) -> Void {
    service.retrieveToken
}
