import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import DataLoading
import Foundation
import TestBudgets
import Testing

/// Requests with the tokens of many keys: each origin's, and each account's.
@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct OriginKeyTests {
    @Test(arguments: [0, 10])
    func `a request carries the token of the key that its origin belongs to`(limit: Int) async throws {
        let servers = [try ResourceServer(needsToken: false), try ResourceServer(needsToken: false)]
        let other = try ResourceServer(needsToken: false)
        let services = TokenServices<String>(keepingIdle: limit) { key, _ in AccessToken(key) }
        let tokens = try OriginTokens(keys: [servers[0].url: "mail", servers[1].url: "files"]) { services[$0] }
        let loader = DataLoaderFactory(tokens: tokens).makeLoader()
        for server in [servers[0], servers[1], other, servers[0]] { _ = try await loader.perform(Request(url: server.url)) }
        #expect(servers.map { $0.arrivals.all.map(\.token) } == [["mail", "mail"], ["files"]])
        #expect(other.arrivals.all.map(\.token) == [nil])
    }

    @Test func `a refusal drops the token of the origin's own key`() async throws {
        let servers = ["a": try ResourceServer(), "b": try ResourceServer()]
        let loaders = servers.mapValues { $0.authorizationServer.loader }
        let services = TokenServices<String>(loader: { key -> any TokenLoader in
            if let loader = loaders[key] { return loader }
            return ClosedLoader()
        })
        let keys = Dictionary(uniqueKeysWithValues: servers.map { ($1.url, $0) })
        let loader = DataLoaderFactory(tokens: try OriginTokens(keys: keys) { services[$0] }).makeLoader()
        for key in ["a", "b"] { _ = try await services[key].retrieveToken() }
        let (a, b) = (try #require(servers["a"]), try #require(servers["b"]))
        a.authorizationServer.revoke(try await services["a"].retrieveToken())
        for server in [a, b] { #expect(try await loader.perform(Request(url: server.url)).status == 200) }
        #expect(a.arrivals.all.map(\.token) == ["access-1", "access-2"])
        #expect(b.arrivals.all.map(\.token) == ["access-1"] && services["b"].cachedToken?.value == "access-1")
    }

    @Test func `each account's factory sends that account's token`() async throws {
        let server = try ResourceServer(needsToken: false)
        let services = TokenServices<String> { key, _ in AccessToken(key) }
        for account in ["Anna", "Ben", "Anna"] {
            let factory = DataLoaderFactory(tokens: try OriginTokens(services[account], for: [server.url]))
            _ = try await factory.makeLoader().perform(Request(url: server.url))
        }
        #expect(server.arrivals.all.map(\.token) == ["Anna", "Ben", "Anna"])
    }

    @Test func `an origin can't belong to two keys`() throws {
        let services = TokenServices<Int> { _, _ in AccessToken("secret") }
        let urls = try ["https://example.com/a", "https://example.com:443/b"].map { try #require(URL(string: $0)) }
        let error = #expect(throws: DataLoadingError.self) { try OriginTokens(keys: [urls[0]: 1, urls[1]: 2]) { services[$0] } }
        #expect(error?.code == .invalidConfiguration)
        #expect(throws: Never.self) { try OriginTokens(keys: [urls[0]: 1, urls[1]: 1]) { services[$0] } }
        let plain = try #require(URL(string: "http://example.com"))
        #expect(throws: DataLoadingError.self) { try OriginTokens(keys: [plain: 1]) { services[$0] } }
    }

    private struct ClosedLoader: TokenLoader {
        let isRepeatable = true
        func loadToken(replacing previous: AccessToken?) async throws -> AccessToken { throw ScriptedFailure.transient }
    }
}
