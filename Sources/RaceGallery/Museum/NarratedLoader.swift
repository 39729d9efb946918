import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// A loader whose loads appear in the diagram, numbered from 1, each as its own task.
///
/// A load that was already cancelled doesn't begin: as with `URLSession`, nothing is sent to the server.
final class NarratedLoader: TokenLoader {
    /// A load's exchange with the server, and how long it takes.
    typealias Exchange = @Sendable (_ number: Int, _ previous: AccessToken?) async throws -> AccessToken

    let isRepeatable: Bool
    private let simulation: Simulation
    private let isNumbered: Bool
    private let exchange: Exchange
    private let count = Lock(0)

    /// - Parameter isNumbered: Whether each load has a column of the diagram; `false` if there are too many.
    init(
        _ simulation: Simulation, isRepeatable: Bool = false, isNumbered: Bool = true, exchange: @escaping Exchange
    ) {
        self.isRepeatable = isRepeatable
        self.simulation = simulation
        self.isNumbered = isNumbered
        self.exchange = exchange
    }

    /// How many loads have begun.
    var begun: Int { count.withLock { $0 } }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        guard !Task.isCancelled else {
            simulation.log("is cancelled before its load begins")
            throw CancellationError()
        }
        let number = count.withLock { count in
            count += 1
            return count
        }
        // Logged by the load, not by the caller that started it, whose task-locals a broken service may pass on to the load.
        let name = isNumbered ? "load \(number)" : "load"
        simulation.log("begins", by: name)
        do {
            let token = try await exchange(number, previous)
            simulation.log("brings \(token.value)", by: name)
            return token
        } catch {
            simulation.log("fails: \(error)", by: name)
            throw error
        }
    }
}

/// The same for a loader with a completion handler, which a scenario calls once.
struct NarratedCallbackLoader: AccessTokenLoader {
    let simulation: Simulation
    let loader: any AccessTokenLoader

    func load(then handler: @escaping Handler) {
        simulation.log("begins", by: "load 1")
        loader.load { result in
            simulation.log("ends", by: "load 1")
            handler(result)
        }
    }
}

extension Simulation {
    /// A loader whose answers are decided when a load begins, and arrive a second later.
    func loader(
        isRepeatable: Bool = false,
        answer: @escaping NarratedLoader.Exchange = { number, _ in AccessToken("token \(number)", lifetime: .seconds(3600)) }
    ) -> NarratedLoader {
        NarratedLoader(self, isRepeatable: isRepeatable) { [clock = seams.clock] number, previous in
            let decision: Result<AccessToken, any Error>
            do { decision = .success(try await answer(number, previous)) } catch { decision = .failure(error) }
            try await clock.sleep(for: .seconds(1))
            return try decision.get()
        }
    }

    /// A simulated server's loader.
    func loader(of server: SimulatedAuthorizationServer, isNumbered: Bool = true) -> NarratedLoader {
        let loader = server.loader
        return NarratedLoader(self, isRepeatable: loader.isRepeatable, isNumbered: isNumbered) { _, previous in
            try await loader.loadToken(replacing: previous)
        }
    }

    /// A simulated server's loader for callbacks.
    func callbackLoader(of server: SimulatedAuthorizationServer) -> NarratedCallbackLoader {
        NarratedCallbackLoader(simulation: self, loader: server.loader)
    }
}
