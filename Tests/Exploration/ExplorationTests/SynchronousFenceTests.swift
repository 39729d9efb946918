import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Guarantee 52: what a callback call ends has ended for every caller when the call returns.
@Suite(.exploring()) struct `Fences where the caller stands` {
    /// The ways to end the token, all through one shim.
    enum Ending: CaseIterable, Sendable {
        case signsOut, signsIn, refuses, asksInstead

        func end(_ token: AccessToken, by shim: AccessTokenService) {
            switch self {
            case .signsOut: shim.reset()
            case .signsIn: shim.replace(with: AccessToken("given", lifetime: .seconds(3_600)))
            case .refuses: shim.invalidate(token)
            case .asksInstead: shim.retrieveToken(insteadOf: token) { _ in }
            }
        }
    }

    /// A surface on which a token can be handed out.
    enum Surface: CaseIterable, Sendable { case hit, asyncCaller, sameShim, otherShim }

    private static func service(_ simulation: Simulation) -> TokenService {
        let environment = TokenService.Environment.driven(
            by: simulation.taskExecutor, clock: InterruptedClock(clock: simulation.clock), seed: 1)
        return TokenService(environment: environment, isRepeatable: true) { _ in
            AccessToken("loaded", lifetime: .seconds(3_600))
        }
    }

    private static func ask(_ shim: AccessTokenService) async throws -> AccessToken {
        let answer = SingleResult<AccessToken>()
        shim.retrieveToken { answer.complete(with: $0) }
        return try await answer.value()
    }

    @Test(arguments: Ending.allCases, Surface.allCases)
    func `52: once a call that ends a token has returned, no surface has that token`(_ ending: Ending, surface: Surface)
        async throws
    {
        for isOnTheWay in [false, true] { try await check(ending, surface, isOnTheWay: isOnTheWay) }
    }

    /// - Parameter isOnTheWay: Whether the program has just given the token, so that the actor may not know it yet.
    private func check(_ ending: Ending, _ surface: Surface, isOnTheWay: Bool) async throws {
        let summary = try await explore(.exhaustive(delays: .everyday(1, thorough: 2))) { simulation in
            let tokens = Self.service(simulation), queue = simulation.serialQueue("queue")
            let shim = AccessTokenService(service: tokens) { queue.async($0) }
            let other = AccessTokenService(service: tokens) { queue.async($0) }
            let old = AccessToken("old", lifetime: .seconds(3_600))
            if !isOnTheWay { await tokens.replace(with: old) }
            simulation.spawn("a") {
                if isOnTheWay { shim.replace(with: old) }
                ending.end(old, by: shim)
                let token: AccessToken? =
                    switch surface {
                    case .hit: tokens.cachedToken
                    case .asyncCaller: try await tokens.retrieveToken()
                    case .sameShim: try await Self.ask(shim)
                    case .otherShim: try await Self.ask(other)
                    }
                try simulation.require(token != old, "the old token came again")
            }
            try await simulation.settle()
        }
        #expect(summary.coverage.isAllWithinBounds)
    }

    @Test func `52: a stream of events made after a sign-out has no event from before it`() async throws {
        let summary = try await explore(.exhaustive(delays: .everyday(1, thorough: 3)), granularity: .accesses) { simulation in
            let tokens = Self.service(simulation), queue = simulation.serialQueue("queue")
            let shim = AccessTokenService(service: tokens) { queue.async($0) }
            let old = AccessToken("old", lifetime: .seconds(3_600))
            await tokens.replace(with: old)
            let earlier = tokens.events()
            simulation.spawn("refusal") { await tokens.invalidate(old) }
            simulation.spawn("sign-out") {
                shim.reset()
                let generation = tokens.currentGeneration, events = tokens.events()
                _ = try? await tokens.retrieveToken()
                for await event in events {
                    try simulation.require(event.generation >= generation, "\(event.name)")
                    break
                }
            }
            try await simulation.settle()
            withExtendedLifetime(earlier) {}
        }
        #expect(summary.coverage.isAllWithinBounds)
    }

    /// Threads may be interrupted at each reading of the clock, so also while the actor decides.
    @Test func `52: whatever the actor is doing, a caller after the sign-out gets nothing from before it`() async throws {
        let summary = try await explore(.exhaustive(delays: .everyday(1, thorough: 3)), granularity: .accesses) { simulation in
            let tokens = Self.service(simulation), queue = simulation.serialQueue("queue")
            let shim = AccessTokenService(service: tokens) { queue.async($0) }
            let old = AccessToken("old", lifetime: .seconds(3_600))
            await tokens.replace(with: old)
            simulation.spawn("refusal") { await tokens.invalidate(old) }
            simulation.spawn("caller") { _ = try? await tokens.retrieveToken() }
            simulation.spawn("sign-in") {
                shim.replace(with: AccessToken("anna", lifetime: .seconds(3_600)))
                shim.reset()
                try simulation.require(tokens.cachedToken?.value != "anna", "a hit")
                let token = try await tokens.retrieveToken()
                try simulation.require(token.value == "loaded", token.value)
            }
            try await simulation.settle()
        }
        #expect(summary.coverage.isAllWithinBounds)
    }
}
