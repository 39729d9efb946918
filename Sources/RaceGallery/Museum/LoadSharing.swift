import AccessTokens
import Interleavings

/// A service that keeps a token and shares one load among its callers: the part that many of the museum's services have in
/// common.
///
/// An exhibit implements the functions that contain its bug. These are the defaults for the others.
protocol LoadSharing: Actor {
    var shared: SharedLoad { get set }

    func load() async throws -> AccessToken
}

/// The parts of such a service.
struct SharedLoad {
    let loader: any TokenLoader
    let executor: (any TaskExecutor)?
    var token: KeptToken
    /// The load that callers wait for; `nil`: there is none.
    var flight: Task<AccessToken, any Error>?

    /// - Parameter token: The token that the service starts with.
    init(_ simulation: Simulation, token first: AccessToken? = nil, loader: some TokenLoader) {
        self.loader = loader
        executor = simulation.seams.executor
        token = KeptToken(clock: simulation.seams.clock)
        token.keep(first)
    }
}

extension LoadSharing {
    func retrieveToken() async throws -> AccessToken {
        if let token = shared.token.valid { return token }
        return try await join().value
    }

    /// Returns the running load, or else a new one.
    func join() -> Task<AccessToken, any Error> {
        let flight = shared.flight ?? Task(executorPreference: shared.executor) { try await self.load() }
        shared.flight = flight
        return flight
    }

    func load() async throws -> AccessToken {
        defer { shared.flight = nil }
        let loaded = try await shared.loader.loadToken(replacing: nil)
        shared.token.keep(loaded)
        return loaded
    }
}
