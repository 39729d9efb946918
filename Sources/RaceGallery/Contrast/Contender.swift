import AccessTokens
import AccessTokensDispatch
public import Interleavings

/// A design of the contrast, made for the explorer: the sources are those that run for real, the surroundings are simulated.
public struct Contender: Sendable {
    /// A service made for one execution; whoever has this value keeps it alive.
    struct Service: Sendable {
        /// Calls it, and comes back when the call does: for a handler that may be long before its answer.
        let ask: @Sendable (_ handler: @escaping Handler) async -> Void
        let signOut: @Sendable () async -> Void
    }

    /// What a call ends with.
    typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    /// Its name, in any table.
    public let name: String
    /// Where it may be interrupted: a design without any protection at each access to what it shares.
    public let granularity: Granularity
    let make: @Sendable (Simulation, Network) -> Service

    private init(
        _ name: String, granularity: Granularity = .jobs,
        make: @escaping @Sendable (_ simulation: Simulation, _ network: Network) -> Service
    ) {
        self.name = name
        self.granularity = granularity
        self.make = make
    }

    /// Runs a trial of this design under one schedule after the other.
    ///
    /// - Parameters:
    ///   - trial: What happens.
    ///   - callers: How many ask.
    ///   - strategy: Which schedules.
    /// - Returns: How many schedules there were, how many failed, and the first failure.
    public func explore(_ trial: Trial, callers: Int, _ strategy: Strategy = .exhaustive()) async throws -> ExplorationSummary {
        try await Interleavings.explore(strategy, granularity: granularity, countsFailures: true) { simulation in
            try await trial.run(Bench(self, trial, callers: callers, simulation))
        }
    }

    /// All designs, from the articles' first to ours.
    public static let all = [unpredictable, enqueueing, threadSafe, reentrant, callbackShim, tokenService]
}

extension Contender {
    /// The articles' first stage, on several threads.
    public static let unpredictable = Contender("stage 1", granularity: .accesses) { simulation, network in
        let service = Controlled(UnpredictableTokenService(loader: network, clock: simulation.clock))
        return Service(ask: { service.object.retrieveToken(then: $0) }, signOut: { service.object.signOut() })
    }

    /// The articles' second stage, on several threads.
    public static let enqueueing = Contender("stage 2", granularity: .accesses) { simulation, network in
        let service = Controlled(EnqueueingTokenService(loader: network, clock: simulation.clock))
        return Service(ask: { service.object.retrieveToken(then: $0) }, signOut: { service.object.signOut() })
    }

    /// The articles' third stage, its queue simulated.
    public static let threadSafe = Contender("stage 3") { simulation, network in
        let queue = simulation.serialQueue("queue")
        let service = ThreadSafeTokenService(loader: network, clock: simulation.clock) { queue.async($0) }
        return Service(ask: { service.retrieveToken(then: $0) }, signOut: { service.signOut() })
    }

    /// The naive actor.
    public static let reentrant = Contender("naive actor") { simulation, network in
        let service = ReentrantTokenService(loader: CallbackTokenLoader(network), clock: simulation.clock)
        return Service(
            ask: { handler in
                do { handler(.success(try await service.retrieveToken())) } catch { handler(.failure(error)) }
            },
            signOut: { await service.signOut() })
    }

    /// The articles' API over `TokenService`, its queue simulated.
    public static let callbackShim = Contender("AccessTokenService") { simulation, network in
        let queue = simulation.serialQueue("queue")
        let service = AccessTokenService(service: tokenService(simulation, network)) { queue.async($0) }
        return Service(ask: { service.retrieveToken(then: $0) }, signOut: { service.reset() })
    }

    /// The service of this package.
    public static let tokenService = Contender("TokenService") { simulation, network in
        let service = tokenService(simulation, network)
        return Service(
            ask: { handler in
                do { handler(.success(try await service.retrieveToken())) } catch { handler(.failure(error)) }
            },
            signOut: { _ = await service.reset() })
    }

    private static func tokenService(_ simulation: Simulation, _ network: Network) -> TokenService {
        TokenService(
            environment: .driven(by: simulation.taskExecutor, clock: simulation.clock, seed: 1),
            loader: CallbackTokenLoader(network))
    }
}
