import AccessTokens
import DataLoading
import Foundation
import LoopbackServers
import TestBudgets
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A server's fault, and the expected result.
struct Fault: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let reply: LoopbackServer.Reply
    let code: DataLoadingError.Code

    init(_ name: String, _ reply: LoopbackServer.Reply, _ code: DataLoadingError.Code) {
        testDescription = name
        self.reply = reply
        self.code = code
    }

    private static func text(_ headers: String, _ body: String = "") -> LoopbackServer.Reply {
        .bytes("HTTP/1.1 \(headers)\r\n\r\n\(body)")
    }

    private static let long = String(repeating: "x", count: 2 << 20)

    /// A connection that ends between two lines of the header is missing on purpose: before Swift 6.4, it makes Foundation crash
    /// the process on Linux (swift-corelibs-foundation#5285), and no code outside of it can prevent that.
    static let all = [
        Fault("closes without an answer", .bytes(""), .connectionFailed),
        Fault("resets at once", .reset(""), .connectionFailed),
        Fault("speaks no HTTP", .bytes("SSH-2.0-OpenSSH_9.2\r\n"), .connectionFailed),
        Fault("closes mid-body", text("200 OK\r\nContent-Length: 50", "half"), .connectionFailed),
        Fault("closes mid-chunk", text("200 OK\r\nTransfer-Encoding: chunked", "50\r\nhalf"), .connectionFailed),
        Fault("resets mid-body", .reset("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"), .connectionFailed),
        Fault("sends no gzip", text("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2", "hi"), .connectionFailed),
        Fault("sends too much", text("200 OK\r\nContent-Length: \(long.utf8.count)", long), .responseTooLong),
        Fault("sends too much without a length", text("200 OK", long), .responseTooLong),
        Fault("refuses too long", text("403 No\r\nContent-Length: \(long.utf8.count)", long), .responseTooLong),
        Fault("refuses half", text("401 No\r\nContent-Length: 50", "half"), .connectionFailed),
        Fault("redirects with too much", text("302 Go\r\nLocation: /x\r\nContent-Length: 2097152", long), .responseTooLong),
        Fault("sends an odd status", text("999 Odd\r\nContent-Length: 0"), .unacceptableStatus),
        Fault("sends an odd challenge", text("401 No\r\nWWW-Authenticate: \"\u{fc},, =\r\nContent-Length: 0"), .unauthorized),
        Fault("wants another scheme", text("401 No\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0"), .unauthorized),
        Fault("wants a password", text("401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0"), .unauthorized),
        Fault("proxies", text("407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0"), .unacceptableStatus),
    ]
}

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct FaultTests {
    /// A session that has these limits, in seconds.
    static func session(silence: TimeInterval, whole: TimeInterval = 600) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = silence
        configuration.timeoutIntervalForResource = whole
        return URLSession(configuration: configuration)
    }

    /// A loader whose session has these limits, in seconds.
    static func loader(_ server: ResourceServer, silence: TimeInterval, whole: TimeInterval = 600) throws -> DataLoader {
        try server.factory(session: session(silence: silence, whole: whole)).makeLoader()
    }

    @Test(arguments: Fault.all)
    func `whatever a server does wrong, its requests end with a clear error, and the next one succeeds`(fault: Fault) async throws
    {
        let server = try ResourceServer { arrival in
            arrival.path == "/fault" ? fault.reply : ResourceServer.ok("fine")
        }
        let loader = try server.loader()
        let request = Request(url: server.url("fault"), responseLimit: 1 << 20)
        let error = try #require(await #expect(throws: DataLoadingError.self) { try await loader.perform(request) })
        #expect(error.code == fault.code, "\(error)")
        #expect(!"\(error)".contains("access-1"))
        #expect(try await loader.perform(Request(url: server.url)).body == Data("fine".utf8))
    }

    @Test func `a body as long as the limit is received`() async throws {
        let server = try ResourceServer { _ in ResourceServer.ok("12345") }
        let loader = try server.loader()
        #expect(try await loader.perform(Request(url: server.url, responseLimit: 5)).body.count == 5)
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader.perform(Request(url: server.url, responseLimit: 4))
        }
        #expect(error?.code == .responseTooLong)
    }

    @Test(arguments: [(silence: 1.0, whole: 600.0), (silence: 30, whole: 1)])
    func `the session's time limits hold, and its connection ends`(silence: TimeInterval, whole: TimeInterval) async throws {
        // The first limit ends a request to a silent server, the second one to a server that drips.
        let server = try ResourceServer { _ in
            silence == 1 ? .unfinished("") : .dripping("HTTP/1.1 200 OK\r\n\r\n", String(repeating: "x", count: 90))
        }
        let loader = try Self.loader(server, silence: silence, whole: whole)
        let error = await #expect(throws: DataLoadingError.self) { try await loader.perform(Request(url: server.url)) }
        #expect(error?.code == .timedOut)
        // On a busy machine the limit may pass before the request has left.
        if !server.arrivals.all.isEmpty { #expect(await server.departures.first { true } != nil) }
    }

    // While a body drips, Foundation keeps a processor busy on Linux.
    @Test(.thorough) func `the limit for silence begins anew with each byte`() async throws {
        // Ten bytes a second, for longer than the limit; the limit is long, since another test's answer may block all sessions.
        let text = String(repeating: "drip", count: 60)
        let server = try ResourceServer { _ in .dripping("HTTP/1.1 200 OK\r\n\r\n", text) }
        let response = try await Self.loader(server, silence: 20).perform(Request(url: server.url))
        #expect(String(decoding: response.body, as: UTF8.self) == text)
    }

    @Test func `a server that can't be reached is a network error`() async throws {
        // Nothing listens on port 1. The port of a server that has just ended may be reused by another test.
        let url = try #require(URL(string: "http://127.0.0.1:1/movies"))
        let error = await #expect(throws: DataLoadingError.self) {
            try await DataLoaderFactory().makeLoader().perform(Request(url: url))
        }
        #expect(error?.code == .connectionFailed && error?.underlying is URLError)
    }

    @Test(arguments: ["Content-Length", "transfer-encoding", "Host", "connection", "Keep-Alive", "TE", "Trailer", "UPGRADE"])
    func `a header that belongs to the connection is refused, and nothing is sent`(name: String) async throws {
        let server = try ResourceServer()
        let request = Request(
            url: server.url, method: "POST", headers: [name: "5"], body: .data(Data("5 and the next".utf8)))
        let error = await #expect(throws: DataLoadingError.self) { try await server.loader().perform(request) }
        #expect(error?.code == .invalidRequest && server.arrivals.all.isEmpty)
        #expect(error.map { "\($0)".contains("'\(name)'") } == true)
    }

    @Test func `a body whose stream cannot be opened is an error, and nothing is sent`() async throws {
        let server = try ResourceServer()
        let request = Request(url: server.url, method: "POST", body: .stream(isReplayable: false) { nil })
        let error = await #expect(throws: DataLoadingError.self) { try await server.loader().perform(request) }
        #expect(error?.code == .invalidRequest && server.arrivals.all.isEmpty)
    }
}
