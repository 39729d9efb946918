import AsyncHTTPClient
import LoopbackServers

/// Clients that end with a test.
func withClient<Value>(
    _ configuration: HTTPClient.Configuration = .init(), _ body: (HTTPClient) async throws -> Value
) async throws -> Value {
    let client = HTTPClient(configuration: configuration)
    do {
        let value = try await body(client)
        try await client.shutdown()
        return value
    } catch {
        try? await client.shutdown()
        throw error
    }
}

extension LoopbackServer.Reply {
    /// A complete answer on a connection that is kept: a client with a pool may use one again that is about to be closed.
    static func answer(_ status: Int, _ headers: String = "", body: String = "") -> Self {
        .kept("HTTP/1.1 \(status) X\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
}
