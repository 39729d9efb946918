import AccessTokens
import AccessTokensDispatch

@MainActor struct App {
    let tokens: TokenService
    let service: AccessTokenService

    init(network: @escaping Network) {
        tokens = TokenService(loader: CallbackTokenLoader(LoginAPI(network: network)))
        service = AccessTokenService(tokens: tokens)
    }
}
