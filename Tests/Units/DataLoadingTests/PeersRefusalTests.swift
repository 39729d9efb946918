import AccessTokens
import AccessTokensHTTP
import AccessTokensTesting
import DataLoading
import Dispatch
import Foundation
import LoopbackServers
import TestBudgets
import Testing

/// Cases of other libraries' suites, in our words, in which the program says what a refusal is, or which request has no token.
@Suite("What other libraries' suites demand after a refusal", .timeLimit(.minutes(10)), .inRealTime) struct PeersRefusalTests {
    private let authorization = SimulatedAuthorizationServer(clock: ManualClock())
    private let seen = ScopedServer.Log()

    /// Performs requests at a server that accepts the second token, and one that a program has brought, and refuses all else.
    private func perform(
        _ usage: TokenUsage, headers: [String: String] = [:], count: Int = 1, refusal: LoopbackServer.Reply,
        whenRefused act: @escaping @Sendable (TokenService) -> Void = { _ in }
    ) async throws -> [Int] {
        let tokens = TokenService(loader: authorization.loader)
        let server = try LoopbackServer { [seen] text in
            let token = ResourceServer.Arrival(text: text).token
            seen.append(token ?? "none")
            if token == "access-2" || token == "access-9" { return ResourceServer.ok("ok") }
            act(tokens)
            return refusal
        }
        let loader = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [server.url], usage: usage)).makeLoader()
        return await withTaskGroup { group in
            for _ in 1...count {
                group.addTask {
                    do { return try await loader.perform(Request(url: server.url, headers: headers)).status } catch {
                        return (error as? DataLoadingError)?.response?.status ?? 0
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    // axios-auth-refresh, shouldInterceptError: statusCodes; OAuthenticator's response status provider.
    @Test(arguments: [(401, [401], true), (403, [401], false), (403, [401, 403], true), (419, [419], true)])
    func `an answer counts as a refusal if its status is one that the program lists`(
        status: Int, listed: [Int], isRefusal: Bool
    ) async throws {
        let usage = TokenUsage { listed.contains($0.status) }
        #expect(try await perform(usage, refusal: ResourceServer.status(status)) == [isRefusal ? 200 : status])
        #expect(seen.all == ["access-1"] + (isRefusal ? ["access-2"] : []))
    }

    // axios-auth-refresh, shouldInterceptError: shouldRefresh.
    @Test(arguments: [(#"{"code":"expired"}"#, 200), (#"{"code":"locked"}"#, 401)])
    func `the program's look at the answer decides, whatever its status`(body: String, status: Int) async throws {
        let usage = TokenUsage { $0.refusesToken && $0.members("code").contains("expired") }
        #expect(try await perform(usage, refusal: ResourceServer.status(401, body: body)) == [status])
    }

    // axios-auth-refresh, shouldInterceptError: skipAuthRefresh.
    @Test func `a request that has its own credentials is sent once, and costs no load`() async throws {
        let headers = ["Authorization": "Basic eA=="]
        #expect(try await perform(TokenUsage(), headers: headers, refusal: ResourceServer.status(401)) == [401])
        #expect(authorization.loadsStarted == 0 && seen.all.count == 1)
    }

    // Alamofire, AuthenticationInterceptorTests: testThatInterceptorRetriesRequestThatFailedWithOutdatedCredential.
    @Test func `a request that was refused with a token replaced meanwhile is sent with the new one, without a load`()
        async throws
    {
        let statuses = try await perform(TokenUsage(), refusal: ResourceServer.status(401)) { tokens in
            let isReplaced = DispatchSemaphore(value: 0)
            Task.detached {
                await tokens.replace(with: AccessToken("access-9", lifetime: .seconds(3_600)))
                isReplaced.signal()
            }
            // On the server's own thread.
            isReplaced.wait()
        }
        #expect(statuses == [200] && authorization.loadsStarted == 1)
        #expect(seen.all == ["access-1", "access-9"])
    }

    // Alamofire, AuthenticationInterceptorTests:
    // testThatInterceptorTriggersRefreshWithMultipleParallelRequestsReturning401Responses.
    @Test func `six requests that are refused in an API's own way make one load`() async throws {
        let statuses = try await perform(
            TokenUsage { $0.status == 498 }, count: 6, refusal: ResourceServer.status(498))
        #expect(statuses == Array(repeating: 200, count: 6) && authorization.loadsStarted == 2)
    }
}
