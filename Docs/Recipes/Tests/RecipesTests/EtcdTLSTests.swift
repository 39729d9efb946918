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

/// The sample of the guide, with a certificate of the client's own.
private func configuration(trusting path: String, showing certificate: String, key: String) throws -> HTTPClient.Configuration {
    var configuration = configuration(trusting: path)
    configuration.tlsConfiguration?.certificateChain =
        try NIOSSLCertificate.fromPEMFile(certificate)
        .map { .certificate($0) }
    configuration.tlsConfiguration?.privateKey = .privateKey(
        try NIOSSLPrivateKey(file: key, format: .pem))
    return configuration
}

@Suite(
    .enabled(if: TestServer("etcd") != nil, "start an etcd with Docs/Recipes/run"), .serialized, .timeLimit(.minutes(5)))
struct `A grant in etcd with TLS, over AsyncHTTPClient` {
    let server: TestServer, mutual: TestServer

    init() throws {
        server = try #require(TestServer("etcd"))
        mutual = try #require(TestServer("mutual"))
    }

    func authority(of server: TestServer) -> String { "\(server.directory)/\(server.name)/authority" }

    /// The configuration of a client with a certificate, for the server that demands one; `issuer` is the server whose authority
    /// has issued it.
    func showingCertificate(of issuer: TestServer) throws -> HTTPClient.Configuration {
        let file = "\(issuer.directory)/\(issuer.name)/client"
        return try configuration(trusting: authority(of: mutual), showing: file, key: file + ".key")
    }

    func withStores(
        _ count: Int = 1, of server: TestServer? = nil, host: String = "localhost", password: String = "app-password-Vu73kQx2",
        key: String = "/tokens/\(UUID())", over configuration: HTTPClient.Configuration? = nil, timeLimit: Duration = .seconds(3),
        _ body: ([EtcdTokenStore]) async throws -> Void
    ) async throws {
        let server = server ?? self.server
        let url = try #require(URL(string: "https://\(host):\(server.port)"))
        try await withClient(configuration ?? RecipesTests.configuration(trusting: authority(of: server))) { client in
            try await body(
                (1...count).map { _ in
                    try EtcdTokenStore(
                        key: key, endpoints: [url], user: server.name == "etcd" ? (name: "app", password: password) : nil,
                        timeLimit: timeLimit, transport: AsyncHTTPClientTransport(client: client))
                })
        }
    }

    @Test func `the store keeps every promise of a shared store, also with a certificate of the client's own`() async throws {
        for (server, configuration) in [(server, nil), (mutual, try showingCertificate(of: mutual))] {
            // Beside the tests of faults a request may take seconds.
            try await withStores(2, of: server, over: configuration, timeLimit: .seconds(30)) { stores in
                let report = try await checkSharedTokenStore(stores)
                #expect(report.failures == 0 && report.swaps > 0 && report.conflicts > 0)
            }
        }
    }

    @Test func `while the server is killed, nothing that it has acknowledged is lost`() async throws {
        try await withStores(2) { try await checkDuringCrashes(of: server, $0, rounds: 80) }
    }

    @Test func `while the server is killed, no session is lost without a reason`() async throws {
        try await withStores(3) { stores in
            let unexplained = try await rotateDuringCrashes(of: server, stores)
            #expect(unexplained.isEmpty)
        }
    }

    @Test func `without a certificate, or with another authority's, nothing is written`() async throws {
        let key = "/tokens/\(UUID())", record = Data("secret".utf8)
        for configuration in [configuration(trusting: authority(of: mutual)), try showingCertificate(of: server)] {
            try await withStores(of: mutual, key: key, over: configuration) { stores in
                let error = await #expect(throws: EtcdError.self) { try await stores[0].swap(record, ifAt: nil) }
                #expect(error.map { "\($0)".contains("secret") } == false, "\(error as Any)")
            }
        }
        try await withStores(of: mutual, key: key, over: try showingCertificate(of: mutual)) { stores in
            #expect(try await stores[0].load() == nil)
            _ = try await stores[0].swap(record, ifAt: nil)
            #expect(try await stores[0].load()?.bytes == record)
        }
    }

    // This server offers HTTP/2.
    @Test func `a request that is cancelled holds up no later one`() async throws {
        try await withStores { stores in
            let store = stores[0]
            for round in 0..<20 {
                let load = Task { try await store.load() }
                try await Task.sleep(for: .microseconds(300 * round))
                load.cancel()
                _ = try await store.load()
            }
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
                #expect("\(error as Any)".contains("could not be reached") && error?.isOutcomeUnknown == false, "\(error as Any)")
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
