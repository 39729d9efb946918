import AccessTokens
import AccessTokensDispatch

@MainActor struct App {
    let tokens: TokenService
    let service: AccessTokenService

    init(network: @escaping Network) {
        tokens = TokenService(loader: LoginAPI(network: network).tokenLoader)
        service = AccessTokenService(tokens: tokens)
    }
}
