import AccessTokensHTTP
import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import Foundation
import LoopbackServers
import Testing

struct SystemEtcdTransportTests {
    func store(_ server: LoopbackServer, timeLimit: Duration = .seconds(20)) throws -> EtcdTokenStore {
        let url = server.url.deletingLastPathComponent()
        return try EtcdTokenStore(key: "k", endpoints: [url], timeLimit: timeLimit)
    }

    func answer(_ body: String, status: String = "200 OK", headers: String = "") -> String {
        "HTTP/1.1 \(status)\r\n\(headers)Content-Length: \(body.utf8.count)\r\nContent-Type: application/json\r\n\r\n\(body)"
    }

    @Test func `a request is a POST with JSON, sent once`() async throws {
        let server = try LoopbackServer(answering: answer(#"{"header":{"revision":"1"}}"#))
        #expect(try await store(server).load() == nil)
        let request = try #require(await server.requests.first { _ in true })
        #if canImport(FoundationNetworking)
        // With HTTP/1.1, etcd's error answers have a trailer.
        #expect(request.hasPrefix("POST /v3/kv/range HTTP/1.0\r\n"))
        #endif
        #expect(request.hasPrefix("POST /v3/kv/range HTTP/1.") && request.hasSuffix(#"{"key":"aw=="}"#))
        #expect(request.lowercased().contains("content-type: application/json"))
        #expect(!request.lowercased().contains("authorization") && !request.lowercased().contains("cookie"))
    }

    @Test func `a redirect is not followed`() async throws {
        let server = try LoopbackServer(
            answering: answer("", status: "307 Temporary Redirect", headers: "Location: http://127.0.0.1:9/elsewhere\r\n"))
        let error = try await failure { _ = try await store(server).load() }
        #expect(error.code == .refused && error.status == 307)
    }

    @Test func `an answer that is too long is an error`() async throws {
        let long = String(repeating: " ", count: (4 << 20) + 1)
        let server = try LoopbackServer(answering: answer(long))
        let error = try await failure { _ = try await store(server).load() }
        #expect(error.code == .unreadableAnswer && "\(error)".contains("longer"))
    }

    @Test func `an exchange with a silent endpoint ends at the time limit`() async throws {
        let server = try LoopbackServer { _ in .unfinished("HTTP/1.1 200 OK\r\n") }
        let store = try store(server, timeLimit: .milliseconds(200))
        let error = try await failure { _ = try await store.swap(Data(), ifAt: nil) }
        #expect(error.code == .timedOut && error.isOutcomeUnknown && "\(error)".contains("0.2 seconds"))
    }

    @Test func `a connection that ends during a swap leaves its outcome unknown`() async throws {
        let server = try LoopbackServer { _ in .reset("") }
        let error = try await failure { _ = try await store(server).swap(Data(), ifAt: nil) }
        #expect(error.code == .connectionLost && error.isOutcomeUnknown)
    }

    @Test func `where nothing listens nothing was sent, and the next endpoint gets the swap`() async throws {
        // Nothing listens on port 1. The port of a server that has just ended may be reused by another test.
        let closed = try #require(URL(string: "http://127.0.0.1:1"))
        let body = #"{"header":{"revision":"5"},"succeeded":true,"responses":[{"response_put":{}}]}"#
        let server = try LoopbackServer(answering: answer(body))
        let alone = try EtcdTokenStore(key: "k", endpoints: [closed])
        let error = try await failure { _ = try await alone.swap(Data(), ifAt: nil) }
        #expect(error.code == .unreachable && !error.isOutcomeUnknown)
        let store = try EtcdTokenStore(key: "k", endpoints: [closed, server.url.deletingLastPathComponent()])
        #expect(try await store.swap(Data(), ifAt: nil) == .done(.init("5")))
    }

    // etcd 3.4.23 answers HTTP/1.1 requests like this; for HTTP/1.0 it doesn't chunk.
    @Test func `an answer with a trailer doesn't crash the process`() async throws {
        let body = #"{"error":"etcdserver: no leader","code":14}"#
        let chunked =
            "HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\nTrailer: Grpc-Trailer-Content-Type\r\n\r\n"
            + "\(String(body.utf8.count, radix: 16))\r\n\(body)\r\n0\r\nGrpc-Trailer-Content-Type: application/grpc\r\n\r\n"
        let server = try LoopbackServer(answering: chunked)
        let error = try await failure { _ = try await store(server).swap(Data(), ifAt: nil) }
        #expect([.unavailable, .connectionLost].contains(error.code) && error.isOutcomeUnknown)
    }

    @Test(arguments: [
        "", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}", "SSH-2.0-OpenSSH_9.2\r\n\r\n",
    ])
    func `an answer that is cut off, or not HTTP, is a lost connection`(text: String) async throws {
        #if canImport(FoundationNetworking)
        let server = try LoopbackServer(answering: text)
        let error = try await failure { _ = try await store(server).load() }
        #expect(error.code == .connectionLost, "\(error)")
        #endif
    }

    @Test func `on Linux, TLS without a transport of the program's own is an error, and nothing is sent`() async throws {
        #if canImport(FoundationNetworking)
        let url = try #require(URL(string: "https://127.0.0.1:2379"))
        let error = try await failure { _ = try await EtcdTokenStore(key: "k", endpoints: [url]).load() }
        #expect(error.code == .invalidConfiguration && "\(error)".contains("TLS"))
        #endif
    }

    @Test func `cancellation ends an exchange at once`() async throws {
        let server = try LoopbackServer { _ in .unfinished("") }
        let store = try store(server, timeLimit: .seconds(3_600))
        let task = Task { try await store.load() }
        _ = await server.requests.first { _ in true }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
