import AccessTokens
import AccessTokensTesting
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import DataLoading

/// All tests use the platform's own session, with servers that really redirect.
@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct RedirectTests {
    static func redirect(_ status: Int, to location: some CustomStringConvertible) -> LoopbackServer.Reply {
        ResourceServer.status(status, "Location: \(location)\r\n", body: "moved")
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect to another origin carries no token, cookie or other header meant for the first one`(
        status: Int
    ) async throws {
        let thief = try ResourceServer(needsToken: false) { _ in ResourceServer.ok("loot") }
        let server = try ResourceServer { _ in Self.redirect(status, to: thief.url("target")) }
        // Even if tokens are bound to that origin: the first server, not the caller, chooses the redirect.
        let loader = try server.factory(origins: [server.url, thief.url]).makeLoader()
        let request = Request(
            url: server.url,
            headers: [
                "Cookie": "a=secret", "X-Api-Key": "secret", "X-Mark": "secret", "Accept": "text/x",
                "USER-AGENT": "us",
            ])
        let response = try await loader.perform(request)
        #expect(String(decoding: response.body, as: UTF8.self) == "loot")
        #expect(response.url == thief.url("target"))
        #expect(server.arrivals.all.map(\.token) == ["access-1"])
        let stolen = try #require(thief.arrivals.all.first)
        #expect(thief.arrivals.all.count == 1 && stolen.path == "/target")
        #expect(stolen.header("Accept") == "text/x" && stolen.header("User-Agent") == "us")
        #expect(!stolen.text.contains("access-1") && !stolen.text.contains("secret"))
    }

    @Test func `a redirect to another origin carries none of the session's headers that may be a secret`() async throws {
        let thief = try ResourceServer(needsToken: false) { _ in ResourceServer.ok("loot") }
        let server = try ResourceServer(needsToken: false) { arrival in
            arrival.path == "/away" ? Self.redirect(302, to: thief.url("target")) : Self.redirect(302, to: "/away")
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X-Api-Key": "secret", "X-Mark": "session", "Accept-Language": "eo"]
        let loader = DataLoaderFactory(session: URLSession(configuration: configuration)).makeLoader()
        _ = try await loader.perform(Request(url: server.url, headers: ["x-mark": "own"]))
        #expect(server.arrivals.all.map { $0.header("X-Api-Key") } == ["secret", "secret"])
        #expect(server.arrivals.all.map { $0.header("X-Mark") } == ["own", "own"])
        let stolen = try #require(thief.arrivals.all.first)
        #expect(stolen.header("Accept-Language") == "eo")
        #expect(stolen.header("X-Api-Key") == nil && stolen.header("X-Mark") == nil && !stolen.text.contains("secret"))
    }

    // By RFC 9110 §15.4.8 the form, and a password in it, would be sent wherever the server redirects.
    @Test(arguments: [(307, "POST"), (308, "POST"), (302, "PUT")])
    func `a redirect to another origin doesn't carry the body`(status: Int, method: String) async throws {
        let thief = try ResourceServer(needsToken: false)
        let server = try ResourceServer { _ in Self.redirect(status, to: thief.url("target?state=secret")) }
        let request = Request(url: server.url, method: method, body: .data(Data("password=secret".utf8)))
        let error = await #expect(throws: DataLoadingError.self) { try await server.loader().perform(request) }
        #expect(error?.code == .redirectRefused && thief.arrivals.all.isEmpty)
        #expect("\(error as Any)".contains("body") && !"\(error as Any)".contains("secret"))
    }

    @Test(arguments: [303, 302])
    func `a POST that a redirect to another origin turns into a GET has no body there`(status: Int) async throws {
        let other = try ResourceServer(needsToken: false)
        let server = try ResourceServer { _ in Self.redirect(status, to: other.url("target")) }
        let request = Request(
            url: server.url, method: "POST", headers: ["Content-Type": "text/plain"], body: .data(Data("password".utf8)))
        _ = try await server.loader().perform(request)
        let arrival = try #require(other.arrivals.all.first)
        #expect(arrival.line == "GET /target HTTP/1.1" && arrival.body.isEmpty && arrival.header("Content-Type") == nil)
    }

    @Test func `a caller's own Authorization does not go to another origin either`() async throws {
        let thief = try ResourceServer(needsToken: false)
        let server = try ResourceServer(needsToken: false) { _ in Self.redirect(302, to: thief.url) }
        _ = try await server.loader().perform(Request(url: server.url, headers: ["AUTHORIZATION": "Basic secret"]))
        #expect(thief.arrivals.all.first?.header("Authorization") == nil)
    }

    @Test func `a redirect back to the first origin carries no token, and a 401 there drops none`() async throws {
        let home = Lock<URL?>(nil)
        let away = try ResourceServer(needsToken: false) { _ in
            Self.redirect(302, to: home.withLock { $0?.appending(path: "back").absoluteString } ?? "")
        }
        let server = try ResourceServer { _ in Self.redirect(302, to: away.url) }
        home.withLock { $0 = server.url }
        let error = await #expect(throws: DataLoadingError.self) {
            try await server.loader().perform(Request(url: server.url))
        }
        #expect(error?.code == .unauthorized)
        #expect(server.arrivals.all.map(\.token) == ["access-1", nil])
        #expect(server.tokens.cachedToken?.value == "access-1")
    }

    @Test(arguments: ["/b/c?d=1", "c?d=1", "../b/c?d=1", "//HOST/b/c?d=1"])
    func `a redirect within the origin keeps the token`(location: String) async throws {
        let server = try ResourceServer { arrival in
            let host = arrival.header("Host") ?? ""
            return arrival.path.hasSuffix("/a")
                ? Self.redirect(302, to: location.replacingOccurrences(of: "HOST", with: host)) : ResourceServer.ok(arrival.path)
        }
        let response = try await server.loader().perform(Request(url: server.url("b/a")))
        #expect(String(decoding: response.body, as: UTF8.self).hasSuffix("/c?d=1"))
        #expect(server.arrivals.all.map(\.token) == ["access-1", "access-1"])
    }

    @Test func `a token refused after a redirect is replaced there, and nothing before the redirect is repeated`() async throws {
        let server = try ResourceServer(needsToken: false) { arrival in
            if arrival.path == "/order" { return Self.redirect(303, to: "/receipt") }
            return arrival.token == "access-2" ? ResourceServer.ok("receipt") : .bytes(ResourceServer.invalidToken)
        }
        let request = Request(url: server.url("order"), method: "POST", body: .data(Data("one".utf8)))
        #expect(String(decoding: try await server.loader().perform(request).body, as: UTF8.self) == "receipt")
        #expect(server.arrivals.all.map(\.line) == ["POST /order HTTP/1.1", "GET /receipt HTTP/1.1", "GET /receipt HTTP/1.1"])
    }

    static let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

    // RFC 9110 §15.4: a 303 always asks for a GET; only a POST becomes one with 301 and 302.
    @Test(arguments: [301, 302, 303, 307, 308], methods)
    func `method and body are kept or changed as HTTP says`(status: Int, method: String) async throws {
        let server = try ResourceServer { arrival in
            arrival.path == "/a" ? ResourceServer.status(status, "Location: /b\r\n") : ResourceServer.ok("")
        }
        let hasBody = !["GET", "HEAD"].contains(method)
        let request = Request(
            url: server.url("a"), method: method, headers: ["Content-Type": "text/plain"],
            body: hasBody ? .data(Data("body".utf8)) : nil)
        _ = try await server.loader().perform(request)
        let arrival = try #require(server.arrivals.all.last)
        let becomesGet = (status == 303 && method != "HEAD") || (status < 303 && method == "POST")
        #expect(arrival.line == "\(becomesGet ? "GET" : method) /b HTTP/1.1")
        #expect(arrival.body == (becomesGet || !hasBody ? "" : "body"))
        #expect(arrival.header("Content-Type") == (becomesGet ? nil : "text/plain"))
        #expect(arrival.token == "access-1" && server.arrivals.all.count == 2)
    }

    // The first server knows the token, and chooses the host.
    @Test func `18: neither error of a redirect shows what the server wrote into its host`() async throws {
        let server = try ResourceServer { _ in Self.redirect(307, to: "http://ACCESS-1.invalid/target") }
        let loader = try server.loader()
        for (method, code) in [("POST", DataLoadingError.Code.redirectRefused), ("GET", .connectionFailed)] {
            let body = method == "POST" ? Request.Body.data(Data("password".utf8)) : nil
            let error = await #expect(throws: DataLoadingError.self) {
                try await loader.perform(Request(url: server.url, method: method, body: body))
            }
            #expect(error?.code == code)
            let texts = everything(in: error as Any) + everything(in: error?.underlying as Any)
            #expect(!texts.lowercased().contains("access-1"), "\(texts)")
        }
    }

    @Test(arguments: ["file:///etc/passwd", "ftp://127.0.0.1/", "http://me:secret@127.0.0.1/", "http://", "data:,x", "http:///x"])
    func `a redirect to a URL that no request may have is refused`(location: String) async throws {
        let server = try ResourceServer { _ in Self.redirect(302, to: location) }
        let error = await #expect(throws: DataLoadingError.self) {
            try await server.loader().perform(Request(url: server.url))
        }
        #expect(error?.code == .redirectRefused && error?.response?.status == 302)
        #expect(server.arrivals.all.count == 1)
    }

    @Test func `a redirect from https to http is refused`() throws {
        let url = try #require(URL(string: "https://api.example/a"))
        let message = try Message(Request(url: url))
        func redirected(to location: String) throws -> Message? {
            try message.redirected(by: Response(url: url, status: 302, headers: ["Location": location]))
        }
        let error = #expect(throws: DataLoadingError.self) { try redirected(to: "http://api.example/b") }
        #expect(error?.code == .redirectRefused)
        #expect(try redirected(to: "https://api.example/b")?.hasLeftOrigin == false)
        #expect(try redirected(to: "//api.example/b")?.origin == message.origin)
    }

    @Test func `a body that can't be sent twice doesn't follow a redirect that would repeat it`() async throws {
        let server = try ResourceServer { _ in Self.redirect(307, to: "/b") }
        let body = Request.Body.stream(isReplayable: false) { InputStream(data: Data("once".utf8)) }
        let error = await #expect(throws: DataLoadingError.self) {
            try await server.loader().perform(Request(url: server.url, method: "POST", body: body))
        }
        #expect(error?.code == .redirectRefused && server.arrivals.all.count == 1)
    }

    @Test func `a circle of redirects ends`() async throws {
        let server = try ResourceServer { _ in Self.redirect(302, to: "/again") }
        let error = await #expect(throws: DataLoadingError.self) {
            try await server.loader().perform(Request(url: server.url))
        }
        #expect(error?.code == .redirectRefused && server.arrivals.all.count == 21)
    }

    @Test func `a redirect without a location is returned as the answer`() async throws {
        let server = try ResourceServer { _ in ResourceServer.status(302) }
        let error = await #expect(throws: DataLoadingError.self) {
            try await server.loader().perform(Request(url: server.url))
        }
        #expect(error?.code == .unacceptableStatus)
    }
}
