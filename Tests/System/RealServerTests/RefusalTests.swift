import AccessTokens
import AccessTokensDispatch
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

extension RealServerTests {
    @Test func `a wrong secret causes one request, one clear error for all callers, and a long pause`() async throws {
        let secret = "not-the-secret"
        let crowd = Crowd(
            loader: try server.loader(for: .init(id: server.client.id, secret: secret)), clock: clock,
            wallClock: { [clock] in Date(timeIntervalSince1970: clock.now.offset / .seconds(1)) })
        let before = try await server.tokensIssued()

        // Each crowd after the first asks during the pause, the last one just before its end.
        for pause in [Duration.zero, .seconds(30), RefreshPolicy.longestPause - .seconds(30) - .milliseconds(1)] {
            clock.advance(by: pause)
            let answers = try await crowd.ask()
            let errors = answers.serviceErrors
            try #require(errors.count == 2 * Crowd.size, "all get the service's error")
            for error in errors {
                try #require(error.code == .loadFailed)
                try #require(error.remedy == .clientRegistration)
                try #require(error.retryAt == Date(timeIntervalSince1970: RefreshPolicy.longestPause / .seconds(1)))
                let cause = try #require(error.underlying as? OAuthError)
                try #require(cause.code == .refused && [400, 401, 403].contains(cause.status))
            }
            let text = try #require(errors.first).description
            #expect(text.contains("configuration or its registration") && text.contains("Check the client's id ("))
            #expect(!text.contains(secret))
        }

        clock.advance(by: .milliseconds(1))
        #expect(try await crowd.ask().serviceErrors.count == 2 * Crowd.size)
        #expect(try await crowd.finish() == Flights(loads: 2, failures: 2), "the server was asked twice in a minute")
        #expect(try await server.tokensIssued() == before)
    }

    @Test func `a token revoked at the server and invalidated by all callers at once is replaced with one load`() async throws {
        let crowd = try crowd()
        let before = try await server.tokensIssued()
        let revoked = try await crowd.service.retrieveToken()
        #expect(try await server.isActive(revoked))
        try await server.revoke(revoked)
        #expect(try await !server.isActive(revoked))
        #expect(crowd.service.cachedToken == revoked, "the service cannot know")

        let answers = try await crowd.ask { [crowd] caller in
            // Half of them through the callback shim.
            if caller.isMultiple(of: 2) {
                await crowd.service.invalidate(revoked)
            } else {
                await withCheckedContinuation { done in crowd.shim.invalidate(revoked) { done.resume() } }
            }
        }
        #expect(answers.count == 2 * Crowd.size && answers.errors.isEmpty)
        #expect(answers.tokens.count == 1)
        let token = try #require(answers.tokens.first)
        #expect(token != revoked)
        #expect(try await server.isActive(token))
        let issued = try await server.tokensIssued() - before
        #expect(try await crowd.finish() == Flights(loads: 2, successes: 2))
        #expect(issued == 2)
    }
}
