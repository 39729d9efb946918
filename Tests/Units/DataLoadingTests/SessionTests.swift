import AccessTokens
import DataLoading
import Foundation
import LoopbackServers
import TestBudgets
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct SessionTests {
    @Test func `the configuration of the given session applies to its loaders`() async throws {
        let server = try ResourceServer()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X-Mark": "theirs"]
        let session = URLSession(configuration: configuration)
        _ = try await server.factory(session: session).makeLoader().perform(Request(url: server.url))
        #expect(server.arrivals.all.first?.header("X-Mark") == "theirs")
        #expect(server.arrivals.all.first?.token == "access-1")
    }

    /// The guide says this about Linux; if the test fails there, `URLSession` now uses its cache: correct the guide.
    @Test func `a cache is used where URLSession uses one, which it doesn't on Linux`() async throws {
        let server = try ResourceServer { _ in
            ResourceServer.ok("fresh", headers: "Cache-Control: max-age=600\r\nContent-Type: text/plain\r\n")
        }
        let cache = URLCache(memoryCapacity: 16 << 20, diskCapacity: 0, diskPath: nil)
        let tokens = try OriginTokens(server.tokens, for: [server.url])
        let loader = DataLoaderFactory(cache: cache, tokens: tokens).makeLoader()
        for _ in 1...2 {
            #expect(try await loader.perform(Request(url: server.url("movies"))).body == Data("fresh".utf8))
        }
        #if canImport(FoundationNetworking)
        #expect(server.arrivals.all.count == 2)
        #expect(cache.cachedResponse(for: URLRequest(url: server.url("movies"))) == nil)
        #endif
    }

    @Test func `descriptions show no query, headers or bodies`() throws {
        let url = try #require(URL(string: "https://example.com/movies?key=secret"))
        let request = Request(
            url: url, method: "POST", headers: ["X": "secret"], query: [URLQueryItem(name: "k", value: "secret")],
            body: .data(Data("secret".utf8)))
        let response = Response(url: url, status: 200, headers: ["X": "secret"], body: Data("secret".utf8))
        var dumped = ""
        dump(request, to: &dumped)
        dump(response, to: &dumped)
        #expect("\(request)" == "POST example.com/movies" && "\(response)" == "Response(status 200, 6 bytes)")
        #expect(!(dumped + String(reflecting: request) + String(reflecting: response)).contains("secret"))
    }
}
