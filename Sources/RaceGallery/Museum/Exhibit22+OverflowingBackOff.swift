import AccessTokens
import AccessTokensTesting
import Interleavings

/// Waits longer after each failure, and treats a negative pause as "never again".
///
/// Each failure doubles the pause, up to a minute: 0.1 s, 0.2 s and so on. The doubling itself is unbounded, and wraps instead of
/// trapping. During a long outage the cap holds for an hour. At failure 58 the product overflows to a negative number, so the
/// minimum of it and a minute is negative, which, as in the settings file, turns refreshing off. The server recovers, but is
/// never asked again.
///
/// The bug sits in `pause`: the result is bounded, not the exponent.
actor OverflowingBackOffService {
    private let loader: any TokenLoader
    private let elapsed: @Sendable () -> Duration
    private var token: KeptToken
    private var failures = 0
    private var lastFailure: (error: any Error, at: Duration)?

    init<C: Clock<Duration>>(loader: some TokenLoader, clock: C) {
        self.loader = loader
        token = KeptToken(clock: clock)
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
    }

    /// The milliseconds to wait after the last failure; negative: refreshing is off.
    private var pause: Int {
        // 100 · 2⁵⁷ is more than an `Int` holds.
        failures == 0 ? 0 : min(100 &<< (failures - 1), 60_000)
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        if let lastFailure, pause < 0 || elapsed() < lastFailure.at + .milliseconds(pause) { throw lastFailure.error }
        do {
            let loaded = try await loader.loadToken(replacing: nil)
            (failures, lastFailure) = (0, nil)
            token.keep(loaded)
            return loaded
        } catch {
            failures += 1
            lastFailure = (error, elapsed())
            throw error
        }
    }
}

extension Exhibit {
    static let overflowingBackOff = Exhibit(
        22, "Back-off arithmetic overflows and disables refresh", source: "aws-sdk-java-v2#6805 at failure 58",
        broken: { simulation in
            let server = simulation.server(latency: .zero)
            let service = OverflowingBackOffService(
                loader: simulation.loader(of: server, isNumbered: false), clock: simulation.seams.clock)
            try await anOutage(simulation, server) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server(latency: .zero)
            let service = simulation.service(loader: simulation.loader(of: server, isNumbered: false))
            try await anOutage(simulation, server) { try await service.retrieveToken() }
        })

    /// The server is unreachable for a while; a worker needs a token every minute and a half; then the server recovers.
    private static func anOutage(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping Retrieve
    ) async throws {
        let attempts = simulation.choose("the attempts that the outage lasts", among: [1, 2, 4, 8, 60]) ?? 0
        server.isReachable = false
        let worker = simulation.spawn("worker") {
            for _ in 1...attempts {
                _ = try? await retrieve()
                try await simulation.clock.sleep(for: .seconds(90))
            }
            server.isReachable = true
            simulation.log("the server is back")
            try await simulation.ask(retrieve)
        }
        let isServed = (try? await worker.value) != nil
        try simulation.require(isServed, "a minute after an outage, however long, there is a token")
    }
}
