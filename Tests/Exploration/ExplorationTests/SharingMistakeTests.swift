import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Interleavings
import TestBudgets
import Testing
import TokenServiceConcurrency

/// The mistakes of fleets that share one refresh token, each with a schedule that loses the session.
@Suite(.timeLimit(.minutes(10))) struct `A small fleet` {
    private enum Fault: String, CaseIterable {
        case none, frozen, killed, lostAnswer, conflict, signIn
    }

    @Test func `that marks, presents and saves keeps its session, except as guarantee 30 names`() async throws {
        try await explore(.mixed(schedules: .everyday(1_000, thorough: 10_000)), time: .whenIdle) { simulation in
            try await Self.live(simulation, mistake: nil)
        }
    }

    @Test(arguments: SharingMistake.allCases)
    func `that makes one mistake loses its session`(mistake: SharingMistake) async throws {
        let failure = try #require(
            await #expect(throws: ScheduleFailure.self) {
                try await explore(.mixed(schedules: 20_000), time: .whenIdle) { simulation in
                    try await Self.live(simulation, mistake: mistake)
                }
            })
        let problem = try #require(failure.underlying as? ExplorationProblem)
        #expect(problem.code == .requirement && problem.detail.contains("the session"), "\(failure)")
        if let folder = ProcessInfo.processInfo.environment["SHARING_MISTAKES"] {
            try "\(failure)".write(toFile: "\(folder)/\(mistake).txt", atomically: true, encoding: .utf8)
        }
    }

    /// Two processes refresh, one thing goes wrong, and the session must survive.
    private static func live(_ simulation: Simulation, mistake: SharingMistake?) async throws {
        let server = SharingServer(isStrict: mistake != .clearsOnRefusal)
        let store = SimulatedSharedStore(clock: simulation.clock)
        let settings = client("settings", nil, server, store, simulation)
        _ = await settings.swap(.init(token: server.issue(to: nil)), at: nil)
        let fault = Fault.allCases[simulation.choose("fault", Fault.allCases.count)]
        let app = simulation.process("app"), widget = simulation.process("widget")
        for (process, name) in [(app, "app"), (widget, "widget")] {
            let client = client(name, mistake, server, store, simulation)
            process.spawn("\(name) refreshes") { await client.refresh() }
        }
        simulation.spawn("system") {
            try? await simulation.clock.sleep(for: .milliseconds(500 * simulation.choose("when", 7)))
            switch fault {
            case .none: break
            case .frozen:
                app.freeze()
                // Shorter than the doubt.
                try await simulation.clock.sleep(for: .seconds(20))
                app.thaw()
            case .killed: app.kill()
            case .lostAnswer: store.loseNextResponses()
            case .conflict: store.conflictNext()
            case .signIn:
                let token = server.issue(to: nil)
                while let seen = await settings.read() {
                    let next = SharingClient.Record(generation: seen.record.generation + 1, token: token)
                    guard case .done? = await settings.swap(next, at: seen.revision) else { continue }
                    break
                }
            }
        }
        try await simulation.settle()
        let (live, receiver) = server.state.withLock { ($0.live, $0.receiver) }
        let kept = try store.contents.map { try SharingClient.decode($0.bytes).token } ?? nil
        // Guarantee 30: the token's holder died between the server's rotation and the save.
        if fault == .killed, receiver == "app" { return }
        try simulation.require(live != nil, "the session goes on: no refresh token is presented twice")
        try simulation.require(kept == live, "the session goes on: the fleet keeps its living token")
    }

    private static func client(
        _ name: String, _ mistake: SharingMistake?, _ server: SharingServer, _ store: SimulatedSharedStore,
        _ simulation: Simulation
    ) -> SharingClient {
        SharingClient(name: name, mistake: mistake, server: server, store: store, clock: simulation.clock)
    }
}
