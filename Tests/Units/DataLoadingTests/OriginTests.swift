import AccessTokens
import AccessTokensTesting
import DataLoading
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct OriginTests {
    let tokens = TokenService { _ in AccessToken("secret") }

    // RFC 6750 §5.3; RFC 9700 §4.9.1.
    @Test(arguments: [
        "http://example.com", "http://localhost.example.com", "http://127.0.0.1.example.com", "http://127.1", "ftp://127.0.0.1",
        "https://", "/path", "https://me@example.com", "https://me:secret@example.com",
    ])
    func `an origin without TLS or loopback is refused for tokens`(text: String) throws {
        let url = try #require(URL(string: text))
        let error = #expect(throws: DataLoadingError.self) { try OriginTokens(tokens, for: [url]) }
        #expect(error?.code == .invalidConfiguration && error?.description.contains("secret") == false)
    }

    @Test(arguments: ["https://example.com/path?q", "http://127.0.0.1:80", "http://LOCALHOST", "http://[::1]:8080", "HTTPS://a"])
    func `an origin with TLS, or on this machine, is accepted for tokens`(text: String) throws {
        #expect(throws: Never.self) { try OriginTokens(tokens, for: [try #require(URL(string: text))]) }
    }

    @Test func `a request to another port of the same host carries no token`() async throws {
        let (mine, other) = (try ResourceServer(), try ResourceServer(needsToken: false))
        #expect(try await mine.loader().perform(Request(url: other.url)).status == 200)
        #expect(other.arrivals.all.map(\.token) == [nil])
    }

    @Test func `a request to the same port by another name carries no token`() async throws {
        let server = try ResourceServer(needsToken: false)
        let url = try #require(URL(string: "http://localhost:\(server.url.port ?? 0)/"))
        _ = try? await server.loader().perform(Request(url: url))
        #expect(server.arrivals.all.allSatisfy { $0.token == nil })
        #expect(server.authorizationServer.loadsStarted == 0)
    }

    @Test func `a 401 from another origin doesn't drop the token`() async throws {
        let (mine, other) = (try ResourceServer(), try ResourceServer())
        _ = try await mine.tokens.retrieveToken()
        let error = await #expect(throws: DataLoadingError.self) {
            try await mine.loader().perform(Request(url: other.url))
        }
        #expect(error?.code == .unauthorized)
        #expect(error?.description.contains("to which no token was added (status 401 from 127.0.0.1") == true)
        #expect(mine.tokens.cachedToken?.value == "access-1")
    }

    #if canImport(FoundationNetworking)
    // In its own process, since it changes the environment.
    @Test func `no token is sent through a proxy in the clear`() async {
        await #expect(processExitsWith: .success) {
            let proxy = try LoopbackServer(answering: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
            let server = try ResourceServer()
            let loader = try server.loader()
            _ = unsafe unsetenv("no_proxy")
            _ = unsafe setenv("all_proxy", "http://127.0.0.1:\(proxy.url.port ?? 0)", 1)
            let error = await #expect(throws: DataLoadingError.self) { try await loader.perform(Request(url: server.url)) }
            #expect(error?.code == .invalidConfiguration)
            #expect(error.map { "\($0)" }?.contains("add 127.0.0.1 to no_proxy") == true)
            #expect(server.authorizationServer.loadsStarted == 0, "no token was asked for")
            _ = unsafe setenv("no_proxy", "127.0.0.1", 1)
            #expect(try await loader.perform(Request(url: server.url)).status == 200, "read anew at each request")
        }
    }
    #endif
}
