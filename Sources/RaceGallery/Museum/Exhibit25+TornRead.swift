import AccessTokens
import AccessTokensTesting
import Interleavings

/// Keeps the token and its expiry in two variables.
///
/// A caller reads the token, which has expired. A refresh on another thread writes a new token and its expiry. The caller
/// reads the expiry, finds an hour left, and sends the old token.
///
/// The bug sits in two variables for one fact; a lock around each of them would not help.
///
/// `@unchecked Sendable`: deliberately unsafe; an exploration runs only one thread at a time.
final class TornService: @unchecked Sendable {
    @Interleaved("the token") private var token = AccessToken?.none
    @Interleaved("the expiry") private var expiry = Duration.zero
    private let loader: any TokenLoader
    private let elapsed: @Sendable () -> Duration

    init<C: Clock<Duration>>(loader: some TokenLoader, clock: C) {
        self.loader = loader
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
    }

    func retrieveToken() async throws -> AccessToken {
        // The race: a refresh between the first read and the second.
        if let token, elapsed() < expiry { return token }
        let start = elapsed()
        let loaded = try await loader.loadToken(replacing: nil)
        token = loaded
        expiry = start + (loaded.lifetime ?? .seconds(3600))
        return loaded
    }
}

extension Exhibit {
    static let tornRead = Exhibit(
        25, "Token and expiry are read at different moments", source: "aws-sdk-go#3448",
        strategy: .exhaustive(preemptions: 2), granularity: .accesses,
        broken: { simulation in
            let server = simulation.server(keepsOneTokenValid: false)
            let service = TornService(loader: simulation.loader(of: server), clock: simulation.seams.clock)
            try await callersAtExpiry(simulation, server) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server(keepsOneTokenValid: false)
            let service = simulation.service(loader: simulation.loader(of: server))
            try await callersAtExpiry(simulation, server) { try await service.retrieveToken() }
        })

    /// The first token has expired when two callers ask, the second when the first one's answer comes.
    private static func callersAtExpiry(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping Retrieve
    ) async throws {
        _ = try await retrieve()
        try await simulation.clock.sleep(for: .seconds(3600))
        for (name, delay) in [("caller 1", 0), ("caller 2", 1)] {
            simulation.spawn(name) {
                try await simulation.clock.sleep(for: .seconds(delay))
                let token = try await simulation.ask(retrieve)
                try simulation.require(
                    server.accepts(token), "the token handed out is the one whose expiry was read, not an expired one")
            }
        }
        try await simulation.settle()
    }
}
