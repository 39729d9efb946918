import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import LoopbackServers
import NIOCore
import Synchronization
import Testing

@testable import BehindHummingbird

@Suite(.timeLimit(.minutes(5)))
struct `A Hummingbird server in front of an API` {
    /// Sends requests of tenants to a server, which has the tokens of these services for them.
    func withServer(
        _ services: TokenServices<String>, api: LoopbackServer,
        _ body: @escaping @Sendable (@escaping @Sendable (_ tenant: String) async throws -> TestResponse) async throws -> Void
    ) async throws {
        try await withClient { client in
            let url = api.url.absoluteString
            let reports = Reports(tokens: services, client: client, url: url, origin: try #require(Origin(url)))
            let router = reports.router { try $0.headers[.authorization] ?? { throw HTTPError(.unauthorized) }() }
            try await Application(router: router).test(.router) { client in
                try await body { tenant in
                    try await client.executeRequest(uri: "/reports", method: .get, headers: [.authorization: tenant], body: nil)
                }
            }
        }
    }

    /// An API whose answer is the token of the request.
    func api() throws -> LoopbackServer {
        try LoopbackServer { request in
            let token = request.components(separatedBy: "Bearer ").last?.prefix { !$0.isNewline } ?? ""
            return .answer(200, body: String(token))
        }
    }

    @Test func `many requests of each tenant carry that tenant's token, and load it once`() async throws {
        let loads = Mutex(0)
        let services = TokenServices<String> { tenant, _ in
            loads.withLock { $0 += 1 }
            return AccessToken("of-\(tenant)")
        }
        try await withServer(services, api: api()) { send in
            try await withThrowingTaskGroup { group in
                for number in 0..<60 {
                    group.addTask {
                        let response = try await send("tenant\(number % 3)")
                        #expect(response.status == .ok && String(buffer: response.body) == "of-tenant\(number % 3)")
                    }
                }
                try await group.waitForAll()
            }
        }
        #expect(loads.withLock(\.self) == 3)
    }

    @Test func `a refused token is replaced in the same tenant's session`() async throws {
        let services = TokenServices<String> { tenant, previous in AccessToken(previous == nil ? "old" : "new") }
        let api = try LoopbackServer { .answer($0.contains("Bearer old\r\n") ? 401 : 200) }
        try await withServer(services, api: api) { send in
            let response = try await send("anna")
            #expect(response.status == .ok)
        }
    }

    @Test(arguments: [
        (ScriptedFailure(.signIn), HTTPResponse.Status.unauthorized),
        (ScriptedFailure(.clientRegistration), .internalServerError), (ScriptedFailure(), .serviceUnavailable),
    ])
    func `a tenant without a token learns what can help`(failure: ScriptedFailure, status: HTTPResponse.Status) async throws {
        let services = TokenServices<String> { _, _ in throw failure }
        try await withServer(services, api: api()) { send in
            let response = try await send("anna")
            #expect(response.status == status)
            #expect((response.headers[.retryAfter] != nil) == (status == .serviceUnavailable))
        }
    }

    @Test func `an API that refuses every token is a bad gateway, and other tenants notice nothing`() async throws {
        let services = TokenServices<String> { tenant, previous in AccessToken(previous == nil ? tenant : "another") }
        let api = try LoopbackServer { .answer($0.contains("Bearer ben\r\n") ? 200 : 401) }
        try await withServer(services, api: api) { send in
            let (anna, ben) = (try await send("anna"), try await send("ben"))
            #expect(anna.status == .badGateway && ben.status == .ok)
        }
    }
}
