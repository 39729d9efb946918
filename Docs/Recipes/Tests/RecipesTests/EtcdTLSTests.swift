import AccessTokensEtcd
import AccessTokensHTTP
import AccessTokensSharing
import AccessTokensTesting
import AsyncHTTPClient
import Foundation
import NIOSSL
import Testing

@testable import OverAsyncHTTPClient

/// The sample of the guide.
private func configuration(trusting path: String) -> HTTPClient.Configuration {
    var configuration = HTTPClient.Configuration.forTokens
    configuration.tlsConfiguration = .makeClientConfiguration()
    configuration.tlsConfiguration?.trustRoots = .file(path)
    return configuration
}

@Suite(
    .enabled(if: TestServer("etcd") != nil, "start an etcd with Docs/Recipes/run"), .serialized, .timeLimit(.minutes(5)))
struct `A grant in etcd with TLS, over AsyncHTTPClient` {
    let server: TestServer
    var certificate: String { server.directory + "/etcd/certificate" }

    init() throws {
        server = try #require(TestServer("etcd"))
    }

    func withStores(
        _ count: Int = 1, host: String = "localhost", password: String = "app-password-Vu73kQx2",
        key: String = "/tokens/\(UUID())", over configuration: HTTPClient.Configuration? = nil,
        _ body: ([EtcdTokenStore]) async throws -> Void
    ) async throws {
        let url = try #require(URL(string: "https://\(host):\(server.port)"))
        try await withClient(configuration ?? RecipesTests.configuration(trusting: certificate)) { client in
            try await body(
                (1...count).map { _ in
                    try EtcdTokenStore(
                        key: key, endpoints: [url], user: EtcdUser(name: "app", password: password),
                        transport: AsyncHTTPClientTransport(client: client))
                })
        }
    }

    @Test func `the store keeps every promise of a shared store`() async throws {
        try await withStores(2) { stores in
            let report = try await checkSharedTokenStore(stores)
            #expect(report.failures == 0 && report.swaps > 0 && report.conflicts > 0)
        }
    }

    @Test func `while the server is killed, no session is lost without a reason`() async throws {
        try await withStores(3) { stores in
            let unexplained = try await rotateDuringCrashes(of: server, stores)
            #expect(unexplained.isEmpty)
        }
    }

    // A restart forgets its authentication tokens, and etcd 3.4 adds a trailer to the error that says so.
    @Test func `a server that has forgotten who the store is learns it again`() async throws {
        try await withStores { stores in
            try await count(1, in: stores[0])
            try await server.restart()
            try await count(1, in: stores[0])
            let sum = try await number(in: stores[0])
            #expect(sum == 2)
        }
    }

    @Test func `a server with another certificate, or for another name, gets nothing`() async throws {
        let key = "/tokens/\(UUID())"
        for (host, configuration) in [("localhost", HTTPClient.Configuration.forTokens), ("127.0.0.1", nil)] {
            try await withStores(host: host, key: key, over: configuration) { stores in
                let error = await #expect(throws: EtcdError.self) { try await stores[0].swap(Data("secret".utf8), ifAt: nil) }
                #expect(error?.code == .unreachable && error?.isOutcomeUnknown == false, "\(error as Any)")
            }
        }
        try await withStores(key: key) { stores in
            let record = try await stores[0].load()
            #expect(record == nil)
        }
    }

    @Test func `a wrong password is an error that doesn't show it`() async throws {
        try await withStores(password: "wrong-password-7Qm") { stores in
            let error = await #expect(throws: EtcdError.self) { try await stores[0].load() }
            #expect(error?.isOutcomeUnknown == false && error.map { "\($0)".contains("7Qm") } == false, "\(error as Any)")
        }
    }
}
