import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct URLSessionTransportTests {
    let transport = URLSessionTransport()

    func request(to server: LoopbackServer, within limit: Duration = .seconds(60)) -> TransportRequest {
        TransportRequest(
            url: server.url, headers: ["Authorization": "Basic c2VjcmV0"], body: Data("a=1&b=2".utf8), timeLimit: limit)
    }

    @Test func `an exchange posts headers and form, and returns status, headers and body`() async throws {
        let server = try LoopbackServer(answering: "HTTP/1.1 201 Fine\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nhello")
        // A transport that waited for its time limit would exceed this suite's.
        let response = try await transport.send(request(to: server, within: .seconds(300)))
        #expect(response == TransportResponse(status: 201, headers: response.headers, body: Data("hello".utf8)))
        #expect(response.header("retry-after") == "7")
        let sent = try #require(await server.requests.first { _ in true })
        #expect(sent.hasPrefix("POST /token HTTP/1.1\r\n"))
        #expect(sent.contains("\r\nAuthorization: Basic c2VjcmV0\r\n"))
        #expect(sent.hasSuffix("\r\n\r\na=1&b=2"))
    }

    // RFC 9700 §4.12: the next address would receive the credentials (307 and 308 repeat the form).
    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect is returned, not followed`(status: Int) async throws {
        let thief = try LoopbackServer(answering: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        let server = try LoopbackServer(
            answering: "HTTP/1.1 \(status) Elsewhere\r\nLocation: \(thief.url)\r\nContent-Length: 2\r\n\r\nhi")
        let response = try await transport.send(request(to: server))
        #expect(response.status == status)
        // The thief's first request is this one, so it received none before.
        _ = try await transport.send(TransportRequest(url: thief.url, headers: [:], body: Data("ours".utf8)))
        let first = try #require(await thief.requests.first { _ in true })
        #expect(first.hasSuffix("ours"))
    }

    // RFC 6749 §5.2: a 401 with a challenge is an answer to read, not a reason to look for stored credentials.
    @Test func `a challenge is returned, not answered`() async throws {
        let server = try LoopbackServer(
            answering: "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 2\r\n\r\n{}")
        let response = try await transport.send(request(to: server))
        #expect(response == TransportResponse(status: 401, headers: response.headers, body: Data("{}".utf8)))
    }

    @Test(arguments: [true, false])
    func `a body longer than the limit is refused while it arrives`(isAnnounced: Bool) async throws {
        let body = String(repeating: "x", count: 10 << 20)
        let server = try LoopbackServer(
            answering: "HTTP/1.1 200 OK\r\n\(isAnnounced ? "Content-Length: \(body.utf8.count)\r\n" : "")\r\n\(body)")
        let error = await #expect(throws: TransportError.self) { try await transport.send(request(to: server)) }
        #expect(error?.kind == "tooLong")
    }

    @Test func `a body as long as the limit is received`() async throws {
        let body = String(repeating: "x", count: 1 << 20)
        let server = try LoopbackServer(answering: "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        #expect(try await transport.send(request(to: server)).body.count == 1 << 20)
    }

    // An end between two lines of the header is missing: before Swift 6.4 it crashes the process on Linux
    // (swift-corelibs-foundation#5285).
    @Test(arguments: [
        "", "nonsense", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"access_",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"acc\r\n",
    ])
    func `a connection that ends before the answer does is a network error`(answer: String) async throws {
        let server = try LoopbackServer(answering: answer)
        let error = await #expect(throws: TransportError.self) { try await transport.send(request(to: server)) }
        guard case .connectionLost(_, .some)? = error else { throw error ?? TransportError.tooLong }
    }

    @Test func `a server that can't be reached is a network error`() async throws {
        // Nothing listens on port 1. The port of a server that has just ended may be reused by another test.
        let url = try #require(URL(string: "http://127.0.0.1:1/token"))
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(TransportRequest(url: url, headers: [:], body: Data()))
        }
        #expect(error?.kind == "notSent")
    }

    static let unfinishedAnswers = ["", "HTTP/1.1 200 OK\r\nContent-L", "HTTP/1.1 200 OK\r\n\r\n{\"access_"]

    @Test(arguments: unfinishedAnswers)
    func `a server that never finishes its answer is given up after the time limit`(answer: String) async throws {
        let arrivals = Lock(0)
        let server = try LoopbackServer { _ in
            arrivals.withLock { $0 += 1 }
            return .unfinished(answer)
        }
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(request(to: server, within: .milliseconds(300)))
        }
        #expect(error?.kind == "timedOut")
        // On a busy machine the limit may pass before the request has left; then there is no connection to end.
        if arrivals.withLock({ $0 > 0 }) { #expect(await server.departures.first { true } != nil) }
    }

    @Test(arguments: [
        (Duration.zero, Duration.milliseconds(100)), (.seconds(-5), .milliseconds(100)), (.seconds(7), .seconds(7)),
        (.seconds(Int64.max), .seconds(3600)),
    ])
    func `a request's time limit is kept within bounds`(given: Duration, kept: Duration) {
        var request = TransportRequest(url: URL(filePath: "/"), timeLimit: given)
        #expect(request.timeLimit == kept)
        request.timeLimit = .seconds(8)
        request.timeLimit = given
        #expect(request.timeLimit == kept)
    }

    @Test(arguments: unfinishedAnswers)
    func `a cancelled send ends at once, and so does its connection`(answer: String) async throws {
        let server = try LoopbackServer { _ in .unfinished(answer) }
        let request = request(to: server)
        let send = Task { try await transport.send(request) }
        _ = await server.requests.first { _ in true }
        send.cancel()
        await #expect(throws: CancellationError.self) { try await send.value }
        #expect(await server.departures.first { true } != nil)
    }

    @Test func `a send that is cancelled before it starts sends nothing`() async throws {
        let server = try LoopbackServer(answering: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        let request = request(to: server)
        let send = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try await transport.send(request)
        }
        await #expect(throws: CancellationError.self) { try await send.value }
        _ = try await transport.send(TransportRequest(url: server.url, headers: [:], body: Data("first".utf8)))
        #expect(await server.requests.first { _ in true }?.hasSuffix("first") == true)
    }

    @Test func `two hundred sends at once each get their own answer`() async throws {
        let server = try LoopbackServer { request in
            let body = request.components(separatedBy: "\r\n\r\n").last ?? ""
            return .bytes("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        }
        try await withThrowingTaskGroup { group in
            for number in 1...200 {
                let body = Data("number=\(number)".utf8)
                group.addTask {
                    let response = try await transport.send(TransportRequest(url: server.url, headers: [:], body: body))
                    #expect(response.body == body)
                }
            }
            try await group.waitForAll()
        }
    }
}
