import AccessTokens
import Interleavings
import TokenServiceConcurrency

/// Shares one load among its callers, without a time limit.
///
/// Caller 1 starts a load that the server never answers, on a connection that stays open. Every later caller finds a load under
/// way and waits for it forever, too.
///
/// The bug is a missing time limit for the load of ``LoadSharing``.
actor UnlimitedLoadService: LoadSharing {
    var shared: SharedLoad

    init(_ shared: SharedLoad) { self.shared = shared }
}

extension Exhibit {
    static let silentServer = Exhibit(
        14, "A loader that never answers blocks all later callers",
        source: "MeetingBar PR#951; KTOR-5879",
        broken: { simulation in
            let service = UnlimitedLoadService(SharedLoad(simulation, loader: loaderOfASilentServer(simulation)))
            try await callersOfASilentServer(simulation, secondAfter: .seconds(300)) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let service = simulation.service(loader: loaderOfASilentServer(simulation))
            try await callersOfASilentServer(simulation, secondAfter: .seconds(300)) { try await service.retrieveToken() }
        })

    /// A server that doesn't answer the first load within a day.
    static func loaderOfASilentServer(_ simulation: Simulation) -> NarratedLoader {
        simulation.loader(isRepeatable: true) { number, _ in
            if number == 1 { try await simulation.clock.sleep(for: .seconds(24 * 3600)) }
            return AccessToken("token \(number)", lifetime: .seconds(3600))
        }
    }

    /// Two callers, the second some time after the first; each must be answered, with a token or an error.
    static func callersOfASilentServer(
        _ simulation: Simulation, secondAfter delay: Duration, _ retrieve: @escaping Retrieve
    ) async throws {
        let callers = [Duration.zero, delay].enumerated().map { index, delay in
            simulation.spawn("caller \(index + 1)") {
                try await simulation.clock.sleep(for: delay)
                let start = simulation.clock.now
                _ = try? await simulation.ask(retrieve)
                return start.duration(to: simulation.clock.now)
            }
        }
        for caller in callers {
            try simulation.require(
                try await caller.value <= .seconds(60), "no caller waits for more than a minute, though the server is silent")
        }
    }
}
