import AccessTokens
import AccessTokensOAuth
import Testing

extension RealServerTests {
    /// Tokens really expire here, so the test has to wait: about 17 s with tokens that live for 5 s.
    ///
    /// Each wait ends at a moment of the token's own life, counted from the arrival of its answer: no earlier than the service's
    /// count, which begins with the load.
    @Test func `while tokens really expire at the server no caller fails, and the server issues one token for each load`()
        async throws
    {
        let clock = ContinuousClock()
        let crowd = Crowd(loader: try server.loader(for: server.client), clock: clock)
        let before = try await server.tokensIssued()
        let policy = RefreshPolicy()
        let opening = try #require(policy.refreshStart(forLifetime: server.lifetime, refreshIn: nil, jitter: 0))
        // The server counts in whole seconds.
        let end = server.lifetime + .seconds(1)
        var tokens = try await newToken(for: crowd)

        // One call after another, from the start of the soft window to the token's end; the first one starts the refresh.
        let start = clock.now
        let passers = try await crowd.ask { [lifetime = server.lifetime] caller in
            let share = Double(caller) / Double(Crowd.size)
            try await clock.sleep(until: start + opening + (lifetime - opening) * share)
        }
        #expect(passers.count == 2 * Crowd.size && passers.errors.isEmpty)
        let refreshed = passers.tokens.subtracting(tokens)
        #expect(!refreshed.isEmpty)
        for token in refreshed { #expect(try await server.isActive(token)) }
        tokens.formUnion(passers.tokens)

        // All callers at once, after the token's end.
        for _ in 1...2 {
            try await clock.sleep(until: clock.now + end)
            for token in tokens { #expect(try await !server.isActive(token), "it has expired at the server too") }
            tokens = try await newToken(for: crowd)
        }

        let issued = try await server.tokensIssued() - before
        let flights = try await crowd.finish()
        #expect(flights.loads >= 3 && flights.refreshes >= 1)
        #expect(flights.successes == flights.started)
        #expect(issued == flights.started)
    }

    /// Lets all ask at once when there is no token; they must get the same new one, which the server considers valid.
    private func newToken(for crowd: Crowd) async throws -> Set<AccessToken> {
        let answers = try await crowd.ask()
        #expect(answers.count == 2 * Crowd.size && answers.errors.isEmpty)
        #expect(answers.tokens.count == 1)
        #expect(try await server.isActive(try #require(answers.tokens.first)))
        return answers.tokens
    }
}
