import AccessTokensHTTP
import AccessTokensEtcd
import AccessTokensSharing
import Foundation
import LoopbackServers
import Testing

@testable import OverAsyncHTTPClient

@Suite(.timeLimit(.minutes(5)))
struct `etcd over AsyncHTTPClient` {
    func withStore(
        at endpoints: [URL], timeLimit: Duration = .seconds(20), _ body: (EtcdTokenStore) async throws -> Void
    ) async throws {
        try await withClient(.forTokens) { client in
            let transport = AsyncHTTPClientTransport(client: client)
            try await body(EtcdTokenStore(key: "k", endpoints: endpoints, timeLimit: timeLimit, transport: transport))
        }
    }

    func endpoint(_ server: LoopbackServer) -> URL { server.url.deletingLastPathComponent() }

    func answer(_ body: String) -> String { "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)" }

    @Test(arguments: ["http://127.0.0.1:1", "http://localhost:1", "https://name.invalid:1"])
    func `where nothing listens nothing was sent, and the next endpoint gets the swap`(endpoint: String) async throws {
        let closed = try #require(URL(string: endpoint))
        try await withStore(at: [closed]) { store in
            let error = await #expect(throws: EtcdError.self) { try await store.swap(Data(), ifAt: nil) }
            #expect("\(error as Any)".contains("could not be reached") && error?.isOutcomeUnknown == false)
        }
        let body = #"{"header":{"revision":"5"},"succeeded":true,"responses":[{"response_put":{}}]}"#
        let server = try LoopbackServer(answering: answer(body))
        try await withStore(at: [closed, self.endpoint(server)]) { store in
            let swap = try await store.swap(Data(), ifAt: nil)
            #expect(swap == .done(.init("5")))
        }
        #expect(await server.requests.first { _ in true }?.hasPrefix("POST /v3/kv/txn HTTP/1.1\r\n") == true)
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\n\r\n{"])
    func `an endpoint that never finishes leaves a swap unknown`(answer: String) async throws {
        let server = try LoopbackServer { _ in .unfinished(answer) }
        try await withStore(at: [endpoint(server)], timeLimit: .seconds(1)) { store in
            let error = await #expect(throws: EtcdError.self) { try await store.swap(Data(), ifAt: nil) }
            #expect(error?.isOutcomeUnknown == true)
        }
    }

    // etcd 3.4 answers errors so, and such an answer ends a process that uses URLSession on Linux.
    @Test func `an error with a trailer is what etcd says it is`() async throws {
        let body = #"{"error":"etcdserver: no leader","code":14}"#
        let server = try LoopbackServer(
            answering: "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\nTrailer: Grpc-Trailer-Content-Type\r\n\r\n"
                + "\(String(body.utf8.count, radix: 16))\r\n\(body)\r\n0\r\nGrpc-Trailer-Content-Type: application/grpc\r\n\r\n")
        try await withStore(at: [endpoint(server)]) { store in
            let error = await #expect(throws: EtcdError.self) { try await store.swap(Data(), ifAt: nil) }
            #expect("\(error as Any)".contains("can't serve the request now: ") && "\(error as Any)".contains("no leader"))
        }
    }
}
