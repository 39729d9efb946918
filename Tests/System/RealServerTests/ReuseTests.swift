import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// The usual transport, which counts requests, and adds the error of RFC 6749 §5.2 where this server sends none.
private final class CountingTransport: TokenTransport {
    private let requests = Lock(0)
    private let namesErrors: Bool

    init(namingErrors: Bool) {
        namesErrors = namingErrors
    }

    var count: Int { requests.withLock { $0 } }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        requests.withLock { $0 += 1 }
        var response = try await URLSessionTransport().send(request)
        if namesErrors, response.status == 400, response.body.isEmpty {
            response.body = Data(#"{"error":"invalid_grant"}"#.utf8)
        }
        return response
    }
}

/// Another program has used the refresh token: a thief's, or one that shares it.
extension RealServerTests {
    @Test func `a reused refresh token causes one request, and every caller is asked to sign in`() async throws {
        let transport = CountingTransport(namingErrors: true)
        let crowd = try await crowdWithSpentGrant(over: transport)
        for pause in [Duration.zero, .seconds(1), RefreshPolicy.longestPause, .seconds(86_400)] {
            clock.advance(by: pause)
            let errors = try await crowd.ask().serviceErrors
            #expect(errors.count == 2 * Crowd.size)
            #expect(errors.allSatisfy { $0.code == .loadFailed && $0.remedy == .signIn && $0.retryAt == nil })
            #expect(transport.count == 1, "a day makes no difference")
        }
        try await expectRecovery(of: crowd, loads: 1)
        #expect(transport.count == 1)
    }

    /// Glewlwyd 2.7.5 gives no reason: the client's credentials may be wrong, and users must not be signed out on a guess.
    @Test func `a refresh token refused without a reason causes one request a minute, and a sign-in after ten minutes`()
        async throws
    {
        let transport = CountingTransport(namingErrors: false)
        let crowd = try await crowdWithSpentGrant(over: transport)
        let almost = RefreshPolicy.longestPause - .milliseconds(1)
        for count in 1...10 {
            for pause in [Duration.zero, almost] {
                clock.advance(by: pause)
                let errors = try await crowd.ask().serviceErrors
                #expect(errors.count == 2 * Crowd.size)
                #expect(errors.allSatisfy { $0.remedy == .signInOrRegistration })
                #expect(errors.allSatisfy { $0.retryAt != nil })
                #expect(errors.allSatisfy { "\($0)".contains("sign in again") }, "the one reason as well as the other")
                #expect(transport.count == count)
            }
            clock.advance(by: .milliseconds(1))
        }
        // The refusal after ten minutes counts as the end of the session, and even a day later nothing is sent.
        for pause in [Duration.zero, .seconds(86_400)] {
            clock.advance(by: pause)
            let errors = try await crowd.ask().serviceErrors
            #expect(errors.count == 2 * Crowd.size && errors.allSatisfy { $0.remedy == .signIn && $0.retryAt == nil })
            #expect(transport.count == 11)
        }
        try await expectRecovery(of: crowd, loads: 11)
        #expect(transport.count == 11)
    }

    /// A crowd whose token has expired and whose refresh token the server has already exchanged.
    private func crowdWithSpentGrant(over transport: CountingTransport) async throws -> Crowd {
        let signedIn = try await server.signIn()
        let successor = try await server.refreshLoader().loadToken(replacing: signedIn)
        #expect(try await server.isGrantActive(of: successor))
        let store = InMemoryTokenStore()
        let crowd = try refreshingCrowd(store: store, over: transport)
        await crowd.service.replace(with: signedIn)
        clock.advance(by: server.lifetime)
        let before = try await server.refreshesIssued()
        let errors = try await crowd.ask().serviceErrors
        #expect(errors.count == 2 * Crowd.size)
        #expect(try await server.refreshesIssued() == before)
        #expect(try await !server.isGrantActive(of: successor), "the server takes it for a theft")
        #expect(store.contents?.token == signedIn, "only a sign-out removes what is stored")
        return crowd
    }

    /// A new sign-in ends the refusal for all callers.
    private func expectRecovery(of crowd: Crowd, loads: Int) async throws {
        let token = try await server.signIn()
        await crowd.service.replace(with: token)
        let answers = try await crowd.ask()
        #expect(answers.errors.isEmpty && answers.tokens == [token])
        #expect(try await crowd.finish() == Flights(loads: loads, failures: loads))
    }
}
