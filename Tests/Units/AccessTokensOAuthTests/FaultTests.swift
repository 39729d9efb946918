import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite(.timeLimit(.minutes(10)))
struct FaultTests {
    let secrets = ["client-s3cr3t", "old-access", "new-access", "refresh-1", "refresh-2", "bWU6Y2xpZW50LXMzY3IzdA=="]

    /// Short only where it must pass, so that a busy machine cannot make it pass elsewhere.
    func timeLimit(_ fault: Fault) -> Duration {
        if case .error(.timedOut, _) = fault.outcome { .seconds(5) } else { .seconds(40) }
    }

    /// A server that answers its first request with the fault, and every later one with a token.
    func server(_ fault: Fault) throws -> LoopbackServer {
        let first = Lock(true)
        return try LoopbackServer { _ in
            let isFirst = first.withLock { first in
                defer { first = false }
                return first
            }
            return isFirst ? fault.reply : Fault.answer(#"{"access_token":"good","token_type":"Bearer","expires_in":3600}"#)
        }
    }

    // RFC 9700 §4.14.2 (museum 19, 29): a hostile server costs an error, never the session.
    @Test(arguments: Fault.ofConnections + Fault.ofAnswers + Fault.ofLifetimes)
    func `whatever a server does, the session goes on with the refresh token that it knows`(fault: Fault) async throws {
        let server = try server(fault)
        let loader = try RefreshTokenLoader(
            tokenURL: server.url, clientID: "me", clientSecret: "client-s3cr3t",
            transport: URLSessionTransport(timeLimit: timeLimit(fault)), wallClock: { Date(timeIntervalSince1970: 784_111_747) })
        let tokens = TokenService(environment: .init(clock: ManualClock()), loader: loader)
        await tokens.replace(with: AccessToken("old-access", lifetime: .zero, refreshToken: "refresh-1"))
        do {
            let token = try await tokens.retrieveToken()
            guard case .token(let lifetime) = fault.outcome else {
                Issue.record("no attempt brought a token")
                return
            }
            #expect(token.value == "new-access" && token.lifetime == lifetime)
            await tokens.invalidate(token)
        } catch let error as TokenServiceError {
            check(error, against: fault.outcome)
        }
        // When to try again is the service's decision; here the test does so at once.
        await tokens.retryNow()
        #expect(try await tokens.retrieveToken().value == "good")
        var requests = server.requests.makeAsyncIterator()
        #expect(await requests.next()?.hasSuffix("refresh_token=refresh-1") == true)
        #expect(await requests.next()?.hasSuffix("refresh_token=\(fault.kept)") == true)
    }

    func check(_ error: TokenServiceError, against outcome: Fault.Outcome) {
        for secret in secrets { #expect(!texts(error).contains(secret)) }
        #expect(error.remedy != .signIn)
        switch outcome {
        case .token: Issue.record("there is a token: \(error)")
        case .error(let code, let retryAfter):
            let cause = error.underlying as? OAuthError
            #expect(cause?.code == code, "\(error)")
            #expect(cause?.retryAfter == retryAfter)
        }
    }

    // Some of the faults of connections end with the time limit.
    @Test(arguments: Fault.ofAnswers + (isThorough ? Fault.ofConnections : []))
    func `whatever a server does, a client's own load ends with the same error`(fault: Fault) async throws {
        let server = try server(fault)
        let loader = try ClientCredentialsLoader(
            tokenURL: server.url, clientID: "me", clientSecret: "client-s3cr3t",
            transport: URLSessionTransport(timeLimit: timeLimit(fault)), wallClock: { Date(timeIntervalSince1970: 784_111_747) })
        let error = try await loader.failure()
        check(TokenServiceError(.loadFailed, underlying: error, remedy: error.remedy), against: fault.outcome)
        #expect(try await loader.loadToken(replacing: nil).value == "good")
    }
}
