import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import TokenServiceConcurrency

/// The way to the server: some requests take longer than others, so that a later one may be answered first.
final class Network: AccessTokenLoader {
    /// All latencies are multiples of this.
    static let step = Duration.milliseconds(40)
    /// The first request is the slowest: it finds no connection yet.
    private static let latencies = [3, 1, 2]
    /// The longest time from a request to its answer.
    static let slowest = step * 3

    private let server: SimulatedAuthorizationServer
    private let answersTwice: Bool
    private let requests = Lock(0)

    init(to server: SimulatedAuthorizationServer, answersTwice: Bool = false) {
        self.server = server
        self.answersTwice = answersTwice
    }

    /// Client credentials may be asked for again.
    var isRepeatable: Bool { true }

    func load(then handler: @escaping Handler) {
        let request = requests.withLock { requests in
            defer { requests += 1 }
            return requests
        }
        server.latency = Self.step * Self.latencies[request % Self.latencies.count]
        server.callbackLoader.load { [answersTwice] result in
            handler(result)
            if answersTwice { handler(result) }
        }
    }
}
