import AccessTokens
import DataLoading
import Foundation
import LoopbackServers
import TestBudgets
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Nothing of a user is left for the next user, or sent to another server, unless the program asked for it.
@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct SignOutTests {
    /// A server that sets a cookie with a long life, as one that has sessions does.
    ///
    /// Its cookie's name is unique to this run, so that cookies of earlier runs don't matter.
    func server(cookie: String) throws -> ResourceServer {
        try ResourceServer { _ in ResourceServer.ok("", headers: "Set-Cookie: \(cookie)=first; Max-Age=3600; Path=/\r\n") }
    }

    @Test(arguments: [nil, URLSessionConfiguration.default, .ephemeral])
    func `no cookie of one user goes with the next user's requests`(configuration: URLSessionConfiguration?) async throws {
        let cookie = "session-\(UUID())"
        let server = try server(cookie: cookie)
        let session = configuration.map { URLSession(configuration: $0) } ?? .shared
        let factory = try server.factory(session: session)
        for _ in 1...2 { _ = try await factory.makeLoader().perform(Request(url: server.url)) }
        #expect(server.arrivals.all.map { $0.header("Cookie") } == [nil, nil])
        for storage in [HTTPCookieStorage.shared, configuration?.httpCookieStorage] {
            #expect(storage?.cookies?.contains { $0.name == cookie } != true)
        }
    }

    @Test func `cookies are kept in the storage that the program gives`() async throws {
        let server = try server(cookie: "session")
        let storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        let factory = DataLoaderFactory(cookies: storage, tokens: try OriginTokens(server.tokens, for: [server.url]))
        for _ in 1...2 { _ = try await factory.makeLoader().perform(Request(url: server.url)) }
        storage.removeCookies(since: .distantPast)
        _ = try await factory.makeLoader().perform(Request(url: server.url))
        #expect(server.arrivals.all.map { $0.header("Cookie") } == [nil, "session=first", nil])
    }

    @Test func `a request's own cookie is sent`() async throws {
        let server = try ResourceServer()
        _ = try await server.loader().perform(Request(url: server.url, headers: ["Cookie": "mine=1"]))
        #expect(server.arrivals.all.map { $0.header("Cookie") } == ["mine=1"])
    }

    @Test func `an Authorization of the session's own configuration is sent to no server`() async throws {
        let (mine, other) = (try ResourceServer(), try ResourceServer(needsToken: false))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = [
            "authorization": "Basic c2VjcmV0", "Proxy-Authorization": "Basic c2VjcmV0", NSString("COOKIE"): "session=1",
            "X-Mark": "theirs",
        ]
        let loader = try mine.factory(session: URLSession(configuration: configuration)).makeLoader()
        for url in [mine.url, other.url] { _ = try await loader.perform(Request(url: url)) }
        let arrivals = mine.arrivals.all + other.arrivals.all
        #expect(arrivals.map { $0.header("X-Mark") } == ["theirs", "theirs"])
        #expect(arrivals.map(\.token) == ["access-1", nil])
        for name in ["Proxy-Authorization", "Cookie"] { #expect(arrivals.allSatisfy { $0.header(name) == nil }) }
    }

    @Test func `the session that was given isn't changed`() throws {
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = cache
        configuration.httpAdditionalHeaders = ["Authorization": "Basic c2VjcmV0"]
        let session = URLSession(configuration: configuration)
        _ = DataLoaderFactory(session: session)
        #expect(session.configuration.urlCache === cache)
        #expect(session.configuration.httpCookieStorage === configuration.httpCookieStorage)
        #expect(session.configuration.httpCookieAcceptPolicy == configuration.httpCookieAcceptPolicy)
        #expect(session.configuration.httpAdditionalHeaders?.count == 1)
    }
}
