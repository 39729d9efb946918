import Foundation

/// Sends the login request, and hands over the body of the answer.
typealias Network = (@escaping (Result<Data, any Error>) -> Void) -> Void

final class LoginAPI: AccessTokenLoader {
    private let network: Network
    private var loginCount = 0

    init(network: @escaping Network) {
        self.network = network
    }

    func load(then handler: @escaping Handler) {
        loginCount += 1
        network { result in
            handler(Result { try JSONDecoder().decode(AccessToken.self, from: try result.get()) })
        }
    }
}
