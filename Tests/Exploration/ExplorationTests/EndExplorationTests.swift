import AccessTokens
import AccessTokensTesting
import Foundation
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Guarantee 45: a program that ends at any moment, in orders chosen at random.
@Suite(.exploring()) struct `A program that ends` {
    /// A server that rotates its refresh token at each load, and a slow disk.
    private final class Outside: TokenLoader, TokenStore {
        struct State {
            var issued = 0
            var stored: StoredToken?
            /// How many loads and saves are under way.
            var atWork = 0
            var hasEnded = false
            var violation: String?
        }

        let isRepeatable = false
        let simulation: Simulation
        let lifetime: Duration
        let state = Lock(State())

        init(_ simulation: Simulation, lifetime: Duration) {
            (self.simulation, self.lifetime) = (simulation, lifetime)
        }

        private func begin(_ what: String) {
            simulation.log("\(what) begins")
            state.withLock { state in
                state.atWork += 1
                if state.hasEnded { state.violation = "a \(what) after the end" }
            }
        }

        private func end() { state.withLock { $0.atWork -= 1 } }

        private func wait(_ label: String) async {
            try? await simulation.clock.sleep(for: simulation.choose(label, among: [.zero, .seconds(1), .seconds(3)]) ?? .zero)
        }

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            begin("load")
            defer { end() }
            await wait("request")
            let number = state.withLock { state in
                state.issued += 1
                return state.issued
            }
            await wait("answer")
            return AccessToken("access \(number)", lifetime: lifetime, refreshToken: "\(number)")
        }

        @concurrent func load() async throws -> StoredToken? { nil }
        @concurrent func remove() async throws {}

        @concurrent func save(_ token: StoredToken) async throws {
            begin("save")
            defer { end() }
            await wait("disk")
            state.withLock { $0.stored = token }
        }

        /// Ends the program's process: everything that isn't saved is lost.
        func endProgram() {
            simulation.log("the program ends")
            state.withLock { state in
                state.hasEnded = true
                if state.atWork > 0 { state.violation = "the program ended in the middle of something" }
                if state.issued > 0, state.stored?.token.refreshToken != "\(state.issued)" {
                    state.violation = "a refresh token was lost"
                }
            }
        }
    }

    @Test(arguments: [TimeModel.whenIdle, .anytime])
    func `45: a drained program has saved every refresh token that the server has issued, and starts no load`(time: TimeModel)
        async throws
    {
        try await explore(.mixed(schedules: .everyday(40, thorough: 2_000)), time: time) { simulation in
            // If time can move at any step, an operation may become so old that it is forgotten and not awaited, but not before
            // this time.
            let forgotten: Duration? = time == .whenIdle ? nil : .seconds(90)
            let unit: Duration = time == .whenIdle ? .seconds(1) : .seconds(1) / 30
            let outside = Outside(simulation, lifetime: unit * 600), clock = simulation.clock
            let tokens = TokenService(
                store: outside, environment: .driven(by: simulation.taskExecutor, clock: clock), loader: outside)
            // No pause, a moment, and times in the soft window, in the leeway and after expiry.
            let pauses = [0, 1, 450, 545, 600].map { unit * $0 }
            for number in 1...3 {
                simulation.spawn("caller \(number)") {
                    for _ in 1...2 {
                        try? await clock.sleep(for: simulation.choose("pause", among: pauses) ?? .zero)
                        let limit = simulation.choose("limit", among: [nil, Duration.seconds(1)]) ?? nil
                        _ = try? await tokens.retrieveToken(within: limit)
                    }
                }
            }
            simulation.spawn("main") {
                try? await clock.sleep(for: simulation.choose("pause of main", among: pauses) ?? .zero)
                let isDrained = await tokens.drain(within: .seconds(100)).isComplete
                if isDrained, forgotten.map({ clock.now.offset < $0 }) ?? true { outside.endProgram() }
            }
            try await simulation.settle()
            let violation = outside.state.withLock { $0.violation }
            try simulation.require(violation == nil, violation ?? "")
        }
    }
}
