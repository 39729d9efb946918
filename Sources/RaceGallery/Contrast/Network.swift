import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Interleavings

/// The way to the server: a request is decided as it is made, its answer takes as long as the schedule says.
final class Network: AccessTokenLoader {
    /// What is wrong with it.
    enum Trouble: Sendable {
        case none
        /// The first answer takes an hour, which nobody waits for.
        case firstAnswerIsLate
        /// Each answer comes twice.
        case answersTwice
    }

    let server: SimulatedAuthorizationServer
    private let simulation: Simulation
    private let trouble: Trouble
    /// Answers under way, in any order.
    private let answers: VirtualQueue

    init(_ simulation: Simulation, trouble: Trouble) {
        self.simulation = simulation
        self.trouble = trouble
        server = SimulatedAuthorizationServer(clock: simulation.clock, executor: simulation.taskExecutor)
        answers = simulation.concurrentQueue("network")
    }

    /// Client credentials may be asked for again.
    var isRepeatable: Bool { true }

    func load(then handler: @escaping Handler) {
        let isLate = trouble == .firstAnswerIsLate && server.loadsStarted == 0
        server.latency = isLate ? .seconds(3600) : .zero
        server.callbackLoader.load { [simulation, answers, trouble] result in
            answers.async {
                simulation.log("the answer comes: \(result.name)")
                handler(result)
                if trouble == .answersTwice { handler(result) }
            }
        }
        simulation.log("load \(server.loadsStarted) begins")
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
