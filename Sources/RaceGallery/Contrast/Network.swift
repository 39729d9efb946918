import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting

/// The connection to the server: each load's outcome is decided when it begins, and the surroundings determine how long the
/// answer takes.
final class Network: AccessTokenLoader {
    /// The network's fault.
    enum Trouble: Sendable {
        case none
        /// The first answer takes an hour, much longer than any limit.
        case firstAnswerIsLate
        /// Each answer is sent twice.
        case answersTwice
    }

    let server: SimulatedAuthorizationServer
    private let surroundings: any Surroundings
    private let trouble: Trouble

    init(_ surroundings: any Surroundings, tokenLifetime: Duration, trouble: Trouble) {
        self.surroundings = surroundings
        self.trouble = trouble
        server = SimulatedAuthorizationServer(
            clock: surroundings.clock, tokenLifetime: tokenLifetime, executor: surroundings.executor)
    }

    /// Client credentials may be requested again.
    var isRepeatable: Bool { true }

    func load(then handler: @escaping Handler) {
        let number = server.loadsStarted
        let isLate = trouble == .firstAnswerIsLate && number == 0
        server.latency = isLate ? .seconds(3600) : surroundings.latency(ofLoad: number)
        server.loader.load { [surroundings, trouble] result in
            surroundings.deliver {
                surroundings.log("the answer comes: \(result.name)")
                handler(result)
                if trouble == .answersTwice { handler(result) }
            }
        }
        surroundings.log("load \(server.loadsStarted) begins")
    }
}

extension Result<AccessToken, any Error> {
    /// The token's name, which is its value: the server is simulated, and so is the secret.
    var name: String {
        switch self {
        case .success(let token): token.value
        case .failure(let error): "\(error)"
        }
    }
}
