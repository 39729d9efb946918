import DataLoading
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Requests on a connection that was used before, and that the server closes after reading them.
@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct RepetitionTests {
    /// A server that keeps a connection after a `GET /first`, and closes it without an answer after reading any other request.
    ///
    /// If that request is repeated, the server answers it.
    static func server() throws -> ResourceServer {
        let refused = Lock<Set<String>>([])
        return try ResourceServer { arrival in
            if arrival.path == "/first" { return .kept("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }
            return refused.withLock { $0.insert(arrival.line).inserted } ? .bytes("") : ResourceServer.ok("again")
        }
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "REPORT"], [nil, "body", "stream"])
    func `a request that may change something reaches the server once`(method: String, body: String?) async throws {
        let server = try Self.server()
        let loader = try FaultTests.loader(server, silence: 120)
        let bodies: [String: Request.Body] = [
            "body": .data(Data("body".utf8)), "stream": .stream(isReplayable: true) { InputStream(data: Data("stream".utf8)) },
        ]
        _ = try await loader.perform(Request(url: server.url("first")))
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader.perform(
                Request(url: server.url("act"), method: method, body: body.flatMap { bodies[$0] }))
        }
        #expect(error?.code == .connectionFailed)
        #expect(server.arrivals.all.map(\.path) == ["/first", "/act"])
        #expect(body.map { server.arrivals.all.last?.body.contains($0) == true } != false)
    }

    #if canImport(FoundationNetworking)
    /// The guide says this about Linux; if the test fails there, `URLSession` no longer repeats requests: correct the guide.
    @Test(arguments: ["GET", "HEAD"])
    func `a request that only reads is sent again by the session itself`(method: String) async throws {
        let server = try Self.server()
        let loader = try FaultTests.loader(server, silence: 120)
        _ = try await loader.perform(Request(url: server.url("first")))
        #expect(try await loader.perform(Request(url: server.url("read"), method: method)).status == 200)
        #expect(server.arrivals.all.map(\.path) == ["/first", "/read", "/read"])
    }
    #endif
}
