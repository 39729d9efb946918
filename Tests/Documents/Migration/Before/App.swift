@MainActor struct App {
    let service: AccessTokenService

    init(network: @escaping Network) {
        service = AccessTokenService(loader: LoginAPI(network: network), queue: .main)
    }
}
