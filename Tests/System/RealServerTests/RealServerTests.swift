import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing

extension Tag {
    /// Needs the authorization server that `.ci/start-glewlwyd` starts.
    @Tag static var realServer: Self
}

/// The service against a real authorization server, whose database is the evidence.
///
/// It is enabled by the environment variables that the script prints:
///
///     env $(.ci/start-glewlwyd start /tmp/token-server) swift test --filter RealServerTests
///     .ci/start-glewlwyd stop /tmp/token-server
///
/// One test at a time: there is one server, and the tests count its tokens. The service has a manual clock, except in
/// `RealExpiryTests.swift`, `ResourceTests.swift` and `AccountTests.swift`, where tokens really expire; with tokens that live 5 s
/// all of it takes about 80 s.
@Suite(
    .enabled(if: RealServer.inEnvironment != nil, "start-glewlwyd prints the variables that enable these tests"),
    .serialized, .tags(.realServer), .timeLimit(.minutes(10)))
struct RealServerTests {
    let server: RealServer
    /// The service's clock, on which a token can expire instantly.
    let clock = ManualClock()

    init() throws {
        server = try #require(RealServer.inEnvironment)
    }

    func crowd(over transport: any TokenTransport = URLSessionTransport()) throws -> Crowd {
        Crowd(loader: try server.loader(for: server.client, over: transport), clock: clock)
    }

    @Test func `two thousand concurrent callers, through five expiries, cause one load each time`() async throws {
        let crowd = try crowd()
        let before = try await server.tokensIssued()
        var tokens: Set<AccessToken> = []
        for round in 1...6 {
            let answers = try await crowd.ask()
            #expect(answers.count == 2 * Crowd.size)
            #expect(answers.errors.isEmpty)
            #expect(answers.tokens.count == 1, "in round \(round) all get the same token")
            let token = try #require(answers.tokens.first)
            #expect(tokens.insert(token).inserted, "in round \(round) the token is a new one")
            #expect(try await server.isActive(token))
            clock.advance(by: server.lifetime)
            #expect(crowd.service.cachedToken == nil, "it has expired")
        }
        let issued = try await server.tokensIssued() - before
        let flights = try await crowd.finish()
        #expect(flights == Flights(loads: 6, successes: 6))
        #expect(issued == flights.started, "the server's books agree")
    }

    @Test func `in the soft window all callers get the current token at once, and the server issues one more`() async throws {
        let crowd = try crowd()
        let before = try await server.tokensIssued()
        let events = crowd.service.events()
        let current = try await crowd.service.retrieveToken()
        let policy = RefreshPolicy()
        let opening = try #require(policy.refreshStart(forLifetime: server.lifetime, refreshIn: nil, jitter: 1))
        clock.advance(by: opening)

        // Nothing holds back the refresh's answer, so callers that arrive after it correctly get the new token.
        let answers = try await crowd.ask()
        #expect(answers.errors.isEmpty)
        #expect(answers.tokens.contains(current))
        _ = await events.first { $0.name == .refreshStarted }
        _ = await events.first { $0.name == .loadSucceeded }
        let next = try #require(crowd.service.cachedToken)
        #expect(next != current)
        #expect(answers.tokens.isSubset(of: [current, next]))
        #expect(try await server.isActive(next))

        let issued = try await server.tokensIssued() - before
        #expect(try await crowd.finish() == Flights(loads: 1, refreshes: 1, successes: 2))
        #expect(issued == 2)
    }

    @Test func `a secret that needs form encoding is sent correctly`() async throws {
        let before = try await server.tokensIssued()
        let service = TokenService(loader: try server.loader(for: server.oddClient, authentication: { .clientSecretPost($0) }))
        let token = try await service.retrieveToken()
        #expect(token.lifetime == server.lifetime)
        #expect(try await server.tokensIssued() == before + 1)
    }
}
