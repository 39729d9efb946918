import AccessTokens
import AccessTokensDPoP
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import Interleavings
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Nonces and keys under many orders of events.
struct StormTests {
    /// Checks the ledger of each server.
    private func check(_ server: NonceServer, requests: Int) {
        let facts = server.facts
        #expect(facts.spent == (0..<facts.spent.count).map { "r\($0)" })
        #expect(facts.refusals <= requests && facts.requests.count == requests + facts.refusals)
        #expect(facts.proofs.count == facts.requests.count)
    }

    // Each refresh token is presented once, and each request repeated at most once.
    @Test func `47: a thousand refreshes with ever-changing nonces spend each refresh token once`() async throws {
        let server = NonceServer(uses: 1), key = try DPoPKey.test()
        let loader = try RefreshTokenLoader(OAuthClient.test(key, server))
        var token = AccessToken("old", tokenType: "DPoP", refreshToken: "r0")
        for number in 1...1000 {
            // Another client with the same key has used up the nonce.
            if number % 3 == 0 { server.state.withLock { $0.nonce += 1 } }
            token = try await loader.loadToken(replacing: token)
        }
        check(server, requests: 1000)
        #expect(server.facts.spent.count == 1000 && server.facts.refusals == 334)
    }

    @Test func `concurrent requests to two servers with changing nonces cost at most one repetition each`()
        async throws
    {
        let servers = (NonceServer(), NonceServer()), key = try DPoPKey.test()
        let clients = [
            try OAuthClient.test(key, servers.0), try OAuthClient.test(key, servers.1, tokenURL: "https://other.example/token"),
        ]
        let count = Int.everyday(200, thorough: 1000)
        let failures = await withTaskGroup { group in
            for number in 0..<count {
                group.addTask { (try? await clients[number % 2].token(for: .jwtBearer("a"))) == nil ? 1 : 0 }
                if number % 50 == 0 { servers.0.state.withLock { $0.nonce += 1 } }
            }
            return await group.reduce(0, +)
        }
        // A nonce may change again between a refusal and the repetition; then the caller is told.
        for server in [servers.0, servers.1] {
            let facts = server.facts
            #expect(facts.requests.count <= count && facts.proofs.count == facts.requests.count)
        }
        #expect(failures <= servers.0.facts.refusals)
        #expect(servers.1.facts.refusals <= count / 2)
    }

    /// Runs a scenario with a service that refreshes with a key, under schedules chosen at random.
    private func exploring(
        _ scenario:
            @escaping @Sendable (_ simulation: Simulation, _ server: NonceServer, _ service: TokenService) async throws -> Void
    ) async throws {
        try await explore(.mixed(schedules: 200)) { simulation in
            let server = NonceServer { _ in try await simulation.clock.sleep(for: .milliseconds(100)) }
            let key = try DPoPKey.test(
                executor: simulation.taskExecutor,
                sign: { bytes in
                    try await simulation.clock.sleep(for: .milliseconds(10))
                    return Data(repeating: 7, count: 64)
                })
            let client = try OAuthClient.test(key, server)
            let service = TokenService(
                environment: .driven(by: simulation.taskExecutor, clock: simulation.clock), loader: try RefreshTokenLoader(client)
            )
            await service.replace(with: AccessToken("old", tokenType: "DPoP", lifetime: .zero, refreshToken: "r0"))
            try await scenario(simulation, server, service)
            let facts = server.facts
            try simulation.require(
                Set(facts.spent).count == facts.spent.count && !facts.requests.isEmpty || facts.spent.isEmpty,
                "each refresh token is spent once: \(facts.spent)")
        }
    }

    @Test func `a refresh token is spent once under every order of callers and nonce changes`() async throws {
        try await exploring { simulation, server, service in
            for number in 1...3 { simulation.spawn("caller \(number)") { _ = try? await service.retrieveToken() } }
            simulation.spawn("server") {
                for _ in 1...2 {
                    server.state.withLock { $0.nonce += 1 }
                    try await simulation.clock.sleep(for: .milliseconds(70))
                }
            }
            try await simulation.settle()
        }
    }

    @Test func `a sign-out between a nonce's refusal and the repetition leaves no token behind`() async throws {
        try await exploring { simulation, server, service in
            simulation.spawn("caller") { _ = try? await service.retrieveToken() }
            simulation.spawn("user") {
                let delay = simulation.choose("milliseconds until the sign-out", among: [105, 50, 115, 150, 250]) ?? 0
                try await simulation.clock.sleep(for: .milliseconds(delay))
                _ = await service.reset()
            }
            try await simulation.settle()
            try simulation.require(service.cachedToken == nil, "nobody is signed in")
        }
    }
}
