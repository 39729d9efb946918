import AccessTokens
import AccessTokensDispatch
import Foundation
import Synchronization

/// Sends the login request, and hands over the body of the answer.
typealias Network = @Sendable (@escaping @Sendable (Result<Data, any Error>) -> Void) -> Void

final class LoginAPI: AccessTokenLoader {
    private let network: Network
    private let loginCount = Mutex(0)

    init(network: @escaping Network) {
        self.network = network
    }

    func load(then handler: @escaping Handler) {
        loginCount.withLock { $0 += 1 }
        network { result in
            handler(Result { try JSONDecoder().decode(Login.self, from: try result.get()).token })
        }
    }
}

/// The server's answer, which used to be the token itself.
private nonisolated struct Login: Decodable {
    let value: String
    let expiry: Date

    var token: AccessToken {
        AccessToken(value, lifetime: .seconds(expiry.timeIntervalSinceNow))
    }
}
