import AccessTokens
import AccessTokensDispatch
import Interleavings
import TokenServiceConcurrency

/// A loader whose requests are seen in the diagram, each as one of its own unless they are too many.
final class NarratedLoader: TokenLoader {
    private let simulation: Simulation
    private let loader: any TokenLoader
    private let isNumbered: Bool
    private let count = Lock(0)

    init(_ simulation: Simulation, _ loader: any TokenLoader, isNumbered: Bool) {
        self.simulation = simulation
        self.loader = loader
        self.isNumbered = isNumbered
    }

    var isRepeatable: Bool { loader.isRepeatable }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        let number = count.withLock { count in
            count += 1
            return count
        }
        // By the load: a flight that inherits its first caller's name is not that caller.
        let name = isNumbered ? "load \(number)" : "load"
        simulation.log("asks the server", by: name)
        do {
            let token = try await loader.loadToken(replacing: previous)
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
        simulation.log("asks the server", by: "load 1")
        loader.load { result in
            simulation.log("answers", by: "load 1")
            handler(result)
        }
    }
}

extension Simulation {
    func narrated(_ loader: some TokenLoader, isNumbered: Bool = true) -> NarratedLoader {
        NarratedLoader(self, loader, isNumbered: isNumbered)
    }

    func narrated(callbacks loader: some AccessTokenLoader) -> NarratedCallbackLoader {
        NarratedCallbackLoader(simulation: self, loader: loader)
    }
}
