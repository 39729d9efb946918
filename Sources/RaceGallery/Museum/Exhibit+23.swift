import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Exhibit {
    static let twentyThree = Exhibit(
        23, "The clock is moved backwards: an expired token looks valid", source: "wall-clock peers", strategy: .pct(),
        broken: { simulation in
            try await aClockSetBack(simulation) { loader, wallClock in
                let service = WallClockTokenService(
                    loader: simulation.narrated(loader), wallClock: wallClock,
                    executor: simulation.taskExecutor)
                return { try await service.retrieveToken() }
            }
        },
        mended: { simulation in
            try await aClockSetBack(simulation) { loader, wallClock in
                let service = simulation.service(wallClock: wallClock, loader: loader)
                return { try await service.retrieveToken() }
            }
        })

    private typealias Ask = @Sendable () async throws -> AccessToken

    /// While a caller gets a token the wall clock is corrected; an hour later it asks again.
    private static func aClockSetBack(
        _ simulation: Simulation, _ makeService: (any TokenLoader, @escaping @Sendable () -> Date) -> Ask
    ) async throws {
        let correction = Lock(0.0)
        let server = simulation.server()
        let retrieve = makeService(server.loader) {
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
            try simulation.require(server.accepts(token), "no clock on the wall makes an expired token valid")
        }
        try await simulation.settle()
    }
}
