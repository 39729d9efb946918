import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The usual transport, which signals when it is about to send.
private struct AnnouncingTransport: TokenTransport {
    let sends: AsyncStream<Void>
    private let announce: AsyncStream<Void>.Continuation

    init() {
        (sends, announce) = AsyncStream.makeStream()
    }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        announce.yield()
        return try await URLSessionTransport().send(request)
    }
}

extension TokenServiceError {
    /// The error code of `URLSession`, if the exchange failed with one.
    fileprivate var urlError: URLError.Code? {
        ((underlying as? OAuthError)?.underlying as? URLError)?.code
    }
}

extension RealServerTests {
    @Test func `a server killed with a request under way costs all callers one transient error`() async throws {
        let transport = AnnouncingTransport()
        let crowd = try crowd(over: transport)
        let before = try await server.tokensIssued()
        try await server.process.restarting {
            // Freeze the server first: the system accepts the request for it, and no answer can arrive before the kill.
            try server.process.freeze()
            async let answers = crowd.ask()
            _ = await transport.sends.first { true }
            #expect(try await server.tokensIssued() == before, "while the request travels: no token yet")
            try await server.process.kill()
            let errors = try await answers.serviceErrors
            #expect(errors.count == 2 * Crowd.size)
            #expect(errors.allSatisfy { $0.code == .loadFailed && $0.remedy == .retry })
            // Reset, not refused: the request had reached the server.
            #expect(errors.contains { $0.urlError == .networkConnectionLost })

            // The server isn't running again yet: there is one more attempt, unless a late caller made it, and then a pause.
            for _ in 1...2 {
                let errors = try await crowd.ask().serviceErrors
                #expect(errors.count == 2 * Crowd.size)
                #expect(errors.allSatisfy { $0.urlError == .cannotConnectToHost && $0.retryAt != nil })
            }
        }
        await crowd.service.retryNow()
        let answers = try await crowd.ask()
        #expect(answers.errors.isEmpty && answers.tokens.count == 1)
        #expect(try await server.isActive(try #require(answers.tokens.first)))
        let issued = try await server.tokensIssued() - before
        #expect(try await crowd.finish() == Flights(loads: 3, successes: 1, failures: 2))
        #expect(issued == 1)
    }

    @Test func `a server killed during its work costs a caller a transient error at most`() async throws {
        let transport = AnnouncingTransport()
        let crowd = try crowd(over: transport)
        let before = try await server.tokensIssued()
        try await server.process.restarting {
            async let answers = crowd.ask()
            _ = await transport.sends.first { true }
            try await server.process.kill()
            let all = try await answers
            #expect(all.count == 2 * Crowd.size)
            #expect(all.errors.count == all.serviceErrors.count)
            #expect(all.serviceErrors.allSatisfy { $0.code == .loadFailed && $0.remedy == .retry })
        }
        clock.advance(by: .seconds(60))
        let answers = try await crowd.ask()
        #expect(answers.errors.isEmpty && answers.tokens.count == 1)
        #expect(try await server.isActive(try #require(answers.tokens.first)))
        let issued = try await server.tokensIssued() - before
        let flights = try await crowd.finish()
        #expect(flights.successes + flights.failures == flights.started)
        #expect((flights.successes...flights.started).contains(issued), "an answer that was lost may have been a token")
    }
}
