import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Guarantees 26 to 42: services that share one grant at a strict server, in orders chosen at random.
@Suite(.exploring()) struct `A shared grant under mixed schedules` {
    /// A server that ends the session when a refresh token is presented twice.
    private final class StrictServer: Sendable {
        struct State {
            var live = 0
            var issued = 0
            /// The service that got the valid token; `nil`: a sign-in.
            var receiver: Int?
            var reuses = 0
            var isSignedOut = false
            /// The services whose processes were killed, or frozen for longer than the doubt, and when.
            var stopped: [Int: Duration] = [:]
            /// Whether the session has ended for the reason that guarantee 30 names.
            var isLost = false
        }

        /// The client's end of one service.
        struct Client: TokenLoader {
            let server: StrictServer
            let number: Int

            @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
                try await server.exchange(previous, for: number)
            }
        }

        struct Refused: TokenLoadFailure {
            var remedy: TokenServiceError.Remedy { .signIn }
        }

        let simulation: Simulation
        let state = Lock(State())
        let exchanges = ExchangeCounter()
        let store: SimulatedSharedStore

        init(_ simulation: Simulation) {
            self.simulation = simulation
            store = SimulatedSharedStore(clock: simulation.clock)
        }

        static func token(_ number: Int) -> AccessToken {
            AccessToken("access-\(number)", lifetime: .seconds(600), refreshToken: "\(number)")
        }

        /// Guarantee 30: the service that got the valid token was stopped before it had saved the token.
        private func isUnsaved(_ state: State) -> Bool {
            guard let receiver = state.receiver, state.stopped[receiver] != nil else { return false }
            let record = store.contents.map { String(decoding: $0.bytes, as: UTF8.self) } ?? ""
            return !record.contains("\"access-\(state.live)\"")
        }

        func signIn() -> AccessToken {
            state.withLock { state in
                state.issued += 1
                (state.live, state.receiver) = (state.issued, nil)
                return Self.token(state.issued)
            }
        }

        @concurrent private func exchange(_ previous: AccessToken?, for number: Int) async throws -> AccessToken {
            exchanges.begin()
            let start = simulation.clock.now.offset
            try? await simulation.clock.sleep(for: .seconds(1))
            let token = state.withLock { state -> AccessToken? in
                guard let token = previous?.refreshToken.flatMap({ Int($0) }) else { return nil }
                guard token == state.live else {
                    // Or this one was frozen after it had checked the time, and before its request arrived.
                    let isLate = state.stopped[number].map { $0 >= start } ?? false
                    if isLate || isUnsaved(state) { state.isLost = true }
                    if !state.isSignedOut, !state.isLost { state.reuses += 1 }
                    return nil
                }
                state.issued += 1
                (state.live, state.receiver) = (state.issued, number)
                return Self.token(state.issued)
            }
            try? await simulation.clock.sleep(for: .seconds(1))
            guard let token else { throw Refused() }
            return token
        }
    }

    /// Time moves only when all tasks wait; the walk covers a doubt that ends while a service is still working (guarantee 30).
    @Test(arguments: [2, 3])
    func `no refresh token is presented twice, and a sign-out by one service signs out all`(services count: Int)
        async throws
    {
        try await explore(.mixed(schedules: .everyday(25, thorough: 5_000)), time: .whenIdle) { simulation in
            let server = StrictServer(simulation)
            let services = (0..<count).map { Self.service(server, $0, simulation) }
            await services[0].replace(with: server.signIn())
            for (index, service) in services.enumerated() {
                let caller = simulation.spawn("caller \(index + 1)") {
                    for turn in 1...3 { await Self.act(index, turn, service, server) }
                }
                if simulation.choose("caller \(index + 1) is cancelled", 4) == 3 {
                    simulation.spawn("canceller \(index + 1)") { caller.cancel() }
                }
            }
            try await simulation.settle()
            let (reuses, isSignedOut) = server.state.withLock { ($0.reuses, $0.isSignedOut) }
            try simulation.require(reuses == 0, "the server saw \(reuses) refresh tokens twice")
            // The others find a sign-out with their next read, at the latest when their token has expired.
            try await simulation.clock.sleep(for: .seconds(700))
            for service in services {
                let token = try? await service.retrieveToken()
                try simulation.require((token == nil) == isSignedOut, "signed out: \(isSignedOut), token: \(token != nil)")
            }
        }
    }

    @Test(arguments: [2, 3])
    func `34: with a check interval, a sign-out by one service ends each session at the first call an interval later`(
        services count: Int
    )
        async throws
    {
        try await explore(.mixed(schedules: .everyday(25, thorough: 5_000)), time: .whenIdle) { simulation in
            let server = StrictServer(simulation)
            let services = (0..<count).map { Self.service(server, $0, simulation, checkEvery: .seconds(10)) }
            await services[0].replace(with: server.signIn())
            for (index, service) in services.enumerated() {
                simulation.spawn("caller \(index + 1)") {
                    for turn in 1...3 {
                        await Self.act(index, turn, service, server)
                        // Hits whose store checks overlap with the others' loads, sign-outs and refusals.
                        try? await simulation.clock.sleep(for: .seconds(10))
                        _ = try? await service.retrieveToken()
                    }
                }
            }
            try await simulation.settle()
            let (reuses, isSignedOut) = server.state.withLock { ($0.reuses, $0.isSignedOut) }
            try simulation.require(reuses == 0, "the server saw \(reuses) refresh tokens twice")
            guard isSignedOut else { return }
            try await simulation.clock.sleep(for: .seconds(10))
            for service in services { _ = try? await service.retrieveToken() }
            try await simulation.settle()
            for service in services { try simulation.require(service.cachedToken == nil, "signed out") }
        }
    }

    private static func service(
        _ server: StrictServer, _ number: Int, _ simulation: Simulation, checkEvery: Duration? = nil
    ) -> TokenService {
        let wallClock = { @Sendable [clock = simulation.clock] in
            Date(timeIntervalSinceReferenceDate: clock.now.offset / .seconds(1))
        }
        return TokenService(
            sharedStore: server.store, sharing: TokenSharing(checkEvery: checkEvery),
            environment: .driven(by: simulation.taskExecutor, clock: simulation.clock, wallClock: wallClock),
            loader: StrictServer.Client(server: server, number: number))
    }

    /// An event at one of the processes, or at the store.
    private enum Fault: CaseIterable {
        case freeze, longFreeze, kill, lostAnswers, failures, conflict, outage
    }

    @Test(arguments: [2, 3])
    func `processes that are frozen and killed at any step lose their session only as guarantee 30 says`(
        processes count: Int
    ) async throws {
        try await explore(.mixed(schedules: .everyday(25, thorough: 5_000)), time: .whenIdle, stepLimit: 50_000) { simulation in
            let server = StrictServer(simulation)
            await Self.service(server, -1, simulation).replace(with: server.signIn())
            let processes = (0..<count).map { simulation.process("process \($0 + 1)") }
            for index in processes.indices {
                processes[index].spawn("caller \(index + 1)") {
                    let service = Self.service(server, index, simulation)
                    for turn in 1...3 { await Self.act(index, turn, service, server) }
                }
            }
            let faults = simulation.choose("faults", 3)
            for fault in 0..<faults {
                let process = simulation.choose("process", count)
                simulation.spawn("system \(fault + 1)") {
                    // An exchange takes two seconds; the swaps before and after it take no time.
                    await server.exchanges.wait(for: 1 + simulation.choose("exchange", 4))
                    try await simulation.clock.sleep(for: .milliseconds(500 * simulation.choose("when", 5)))
                    try await Self.strike(simulation, processes[process], process, server)
                }
            }
            try await simulation.settle()
            server.exchanges.endWaits()
            try await simulation.settle()
            let reuses = server.state.withLock { $0.reuses }
            try simulation.require(reuses == 0, "the server saw \(reuses) refresh tokens twice")
            // A process that starts later finds the session, once it no longer has to wait for a dead holder's mark.
            try await simulation.clock.sleep(for: .seconds(1_000))
            let late = Self.service(server, count, simulation)
            var token = try? await late.retrieveToken(within: .seconds(1_000))
            // The store's remaining planned failures may affect it first.
            for _ in 1...8 where token == nil {
                try await simulation.clock.sleep(for: .seconds(100))
                token = try? await late.retrieveToken(within: .seconds(1_000))
            }
            if server.state.withLock({ $0.isLost || $0.isSignedOut }) { return }
            try simulation.require(token != nil, "the session goes on")
        }
    }

    private static func strike(
        _ simulation: Simulation, _ process: SimulatedProcess, _ number: Int, _ server: StrictServer
    ) async throws {
        let store = server.store
        switch simulation.choose("fault", among: Fault.allCases) {
        case .freeze?:
            process.freeze()
            try await simulation.clock.sleep(for: .seconds(20))
            process.thaw()
        case .longFreeze?:
            server.state.withLock { $0.stopped[number] = simulation.clock.now.offset }
            process.freeze()
            try await simulation.clock.sleep(for: .seconds(900))
            process.thaw()
        case .kill?:
            server.state.withLock { $0.stopped[number] = simulation.clock.now.offset }
            process.kill()
        case .lostAnswers?: store.loseNextResponses(1 + simulation.choose("how many", 3))
        case .failures?: store.failNext(simulation.choose("which", 2) == 0 ? .load : .swap, 2)
        case .conflict?: store.conflictNext(2)
        case .outage?:
            store.isReachable = false
            try await simulation.clock.sleep(for: .seconds(30))
            store.isReachable = true
        case nil: break
        }
    }

    private static func act(_ index: Int, _ turn: Int, _ service: TokenService, _ server: StrictServer) async {
        switch server.simulation.choose("caller \(index + 1), turn \(turn)", 6) {
        case 0, 1: _ = try? await service.retrieveToken()
        case 2: if let token = try? await service.retrieveToken() { await service.invalidate(token) }
        case 3, 4: try? await server.simulation.clock.sleep(for: .seconds(index == 0 ? 590 : 560))
        default:
            guard index == 0, turn == 3 else { return }
            server.state.withLock { $0.isSignedOut = true }
            _ = await service.reset()
        }
    }
}
