#if canImport(FoundationNetworking)
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import LoopbackServers
import TestBudgets
import Testing

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct ProxyTests {
    // In its own process, since it changes the environment.
    @Test func `no client secret is sent through a proxy in the clear`() async {
        await #expect(processExitsWith: .success) {
            let proxy = try LoopbackServer(answering: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
            let server = try LoopbackServer(answering: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            let request = TransportRequest(url: server.url, headers: ["Authorization": "Basic c2VjcmV0"], body: Data("a=b".utf8))
            _ = unsafe unsetenv("no_proxy")
            _ = unsafe setenv("http_proxy", "http://127.0.0.1:\(proxy.url.port ?? 0)", 1)
            let error = await #expect(throws: TransportError.self) { try await URLSessionTransport().send(request) }
            #expect(error?.kind == "invalidConfiguration")
            #expect(error.map { "\($0)" }?.contains("add 127.0.0.1 to no_proxy") == true)
            _ = unsafe setenv("no_proxy", "127.0.0.1", 1)
            #expect(try await URLSessionTransport().send(request).body == Data("ok".utf8), "read anew at each request")
        }
    }
}
#endif
