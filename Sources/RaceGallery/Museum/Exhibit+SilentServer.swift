import AccessTokens
import Interleavings

extension Exhibit {
    /// A server that never answers the first load: not within a day.
    static func silentServer(_ simulation: Simulation) -> Loader {
        Loader(simulation, isRepeatable: true, latency: { $0 == 1 ? .seconds(24 * 3600) : .seconds(1) })
    }

    /// Two callers, one some time after the other, each of whom must be answered, with a token or an error.
    static func callersOfASilentServer(
        _ simulation: Simulation, secondAfter delay: Duration, _ retrieve: @escaping Retrieve
    ) async throws {
        let callers = [Duration.zero, delay].enumerated().map { index, delay in
            simulation.spawn("caller \(index + 1)") {
                try await simulation.clock.sleep(for: delay)
                simulation.log("asks for a token")
                let start = simulation.clock.now
                do {
                    let token = try await retrieve()
                    simulation.log("gets \(token.value)")
                } catch {
                    simulation.log("gets an error: \(error)")
                }
                return start.duration(to: simulation.clock.now)
            }
        }
        for caller in callers {
            try simulation.require(
                try await caller.value <= .seconds(60), "nobody waits for more than a minute, though the server is silent")
        }
    }
}
