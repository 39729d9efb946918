import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Measures a token's life by the wall clock.
///
/// A token arrives at nine, good until ten by the wall clock. The network corrects that clock, which was two hours fast: now it
/// shows seven. For three hours the service hands out a token that the server refuses after one.
///
/// The bug sits wherever a `Date` is compared with a later reading of the same clock, which may be earlier.
actor WallClockService {
    private let loader: any TokenLoader
    private let executor: (any TaskExecutor)?
    private let wallClock: @Sendable () -> Date
    private var kept: (token: AccessToken, expiry: Date)?
    private var load: Task<AccessToken, any Error>?

    init(loader: some TokenLoader, wallClock: @escaping @Sendable () -> Date, executor: (any TaskExecutor)?) {
        self.loader = loader
        self.executor = executor
        self.wallClock = wallClock
    }

    func retrieveToken() async throws -> AccessToken {
        // The race: the user, or the network, sets the clock between this reading and the one below.
        if let kept, wallClock() < kept.expiry { return kept.token }
        if let load { return try await load.value }
        let load = Task(executorPreference: executor) { [loader] in try await loader.loadToken(replacing: nil) }
        self.load = load
        defer { self.load = nil }
        let token = try await load.value
        let lifetime = (token.lifetime ?? .seconds(3600)) / .seconds(1)
        kept = (token, wallClock().addingTimeInterval(lifetime))
        return token
    }
}

extension Exhibit {
    static let clockSetBack = Exhibit(
        23, "The clock is moved backwards: an expired token looks valid", source: "wall-clock peers", strategy: .pct(),
        broken: { simulation in
            try await aClockSetBack(simulation) { loader, wallClock in
                let service = WallClockService(
                    loader: loader, wallClock: wallClock, executor: simulation.seams.executor)
                return { try await service.retrieveToken() }
            }
        },
        mended: { simulation in
            try await aClockSetBack(simulation) { loader, wallClock in
                let service = simulation.service(wallClock: wallClock, loader: loader)
                return { try await service.retrieveToken() }
            }
        })

    /// While a caller gets a token the wall clock is corrected; an hour later it asks again.
    private static func aClockSetBack(
        _ simulation: Simulation, _ makeService: (any TokenLoader, @escaping @Sendable () -> Date) -> Retrieve
    ) async throws {
        let correction = Lock(0.0)
        let server = simulation.server()
        let retrieve = makeService(simulation.loader(of: server)) {
            let seconds = simulation.clock.now.offset / .seconds(1)
            return Date(timeIntervalSince1970: 1_000_000_000 + seconds + correction.withLock { $0 })
        }
        simulation.spawn("time service") {
            try await simulation.clock.sleep(for: .seconds(1))
            correction.withLock { $0 = -7200 }
            simulation.log("sets the wall clock back by two hours")
        }
        simulation.spawn("caller") {
            try await simulation.ask(retrieve)
            try await simulation.clock.sleep(for: .seconds(3600))
            let token = try await simulation.ask(retrieve, saying: "asks again, an hour later")
            try simulation.require(server.accepts(token), "an expired token stays expired, whatever the wall clock says")
        }.allowingError()
        try await simulation.settle()
    }
}
