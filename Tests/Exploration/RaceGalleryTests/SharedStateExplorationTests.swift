import Interleavings
import InterleavingsEverything
import RaceGallery
import Testing

/// The second article's traps, found by exploring, with the simulation's clock and with a plain sleep.
@Suite struct `Shared state under the explorer` {
    static let drivings = [Driving.preferred, .everything]

    /// A server whose answers take a second, and name their request.
    private static func fetch(_ simulation: Simulation) -> @Sendable @concurrent (String) async throws -> String {
        { path in
            simulation.log("the server is asked for \(path)")
            try await simulation.seams.clock.sleep(for: .seconds(1))
            return "the answer for \(path)"
        }
    }

    @Test(arguments: drivings) func `a request used twice lets a closing screen end the other's performance`(
        _ driving: Driving
    ) async throws {
        let failure = try await #require(throws: ScheduleFailure.self) {
            try await explore(driving: driving) { simulation in
                let request = ReusedRequest(path: "movies")
                let fetch = Self.fetch(simulation)
                simulation.spawn("screen") {
                    let answer = try await request.perform(with: fetch)
                    try simulation.require(answer != nil, "this screen's performance goes on")
                }
                simulation.spawn("closed screen") {
                    let performance = simulation.spawn("its performance") { try await request.perform(with: fetch) }
                    try await simulation.clock.sleep(for: .milliseconds(500))
                    request.cancel()
                    _ = try? await performance.value
                }
                try await simulation.settle()
            }
        }
        #expect("\(failure.underlying)" == "this screen's performance goes on")
    }

    @Test(arguments: drivings) func `a loader for all screens lets one screen show what another one asked for`(_ driving: Driving)
        async throws
    {
        let failure = try await #require(throws: ScheduleFailure.self) {
            try await explore(driving: driving) { simulation in
                let loader = SharedMovieLoader(fetch: Self.fetch(simulation))
                for genre in ["comedies", "westerns"] {
                    simulation.spawn(genre) {
                        try await loader.loadMovies(of: genre)
                        await Task.yield()
                        try simulation.require(loader.movies == "the answer for \(genre)", "a screen shows its own movies")
                    }
                }
                try await simulation.settle()
            }
        }
        #expect("\(failure.underlying)" == "a screen shows its own movies")
    }

    @Test(arguments: drivings) func `a loader for all screens lets a closing screen end the other's requests`(_ driving: Driving)
        async throws
    {
        let failure = try await #require(throws: ScheduleFailure.self) {
            try await explore(driving: driving) { simulation in
                let loader = SharedMovieLoader(fetch: Self.fetch(simulation))
                simulation.spawn("screen") {
                    do { try await loader.loadMovies(of: "comedies") } catch {
                        try simulation.require(false, "this screen stays open")
                    }
                }
                simulation.spawn("closed screen") { loader.cancelAll() }
                try await simulation.settle()
            }
        }
        #expect("\(failure.underlying)" == "this screen stays open")
    }

    @Test(arguments: drivings) func `a request for each performance lets every screen show its own movies`(_ driving: Driving)
        async throws
    {
        try await explore(.exhaustive(preemptions: 2, limit: 2_000), driving: driving) { simulation in
            for genre in ["comedies", "westerns"] {
                simulation.spawn(genre) {
                    let request = ReusedRequest(path: genre)
                    let answer = try await request.perform(with: Self.fetch(simulation))
                    try simulation.require(answer == "the answer for \(genre)", "a screen shows its own movies")
                }
            }
            try await simulation.settle()
        }
    }
}
