import AccessTokens
import AccessTokensOAuth
import Foundation
import LoopbackServers
import Testing

#if canImport(FoundationNetworking)
/// What the environment says of proxies, read as libcurl reads it, or more strictly.
@Suite(.timeLimit(.minutes(10)))
struct EnvironmentProxyTests {
    static let proxy = "http://user:SECRET@proxy.example:3128"

    @Test(arguments: [
        (["http_proxy": proxy], "http_proxy"), (["all_proxy": proxy], "all_proxy"), (["ALL_PROXY": proxy], "ALL_PROXY"),
        (["http_proxy": "", "all_proxy": proxy], "all_proxy"), (["http_proxy": "socks5://proxy"], "http_proxy"),
        (["http_proxy": proxy, "no_proxy": ""], "http_proxy"), (["http_proxy": proxy, "no_proxy": "localhost"], "http_proxy"),
        (["http_proxy": proxy, "no_proxy": "127."], "http_proxy"), (["http_proxy": proxy, "no_proxy": "0.0.1"], "http_proxy"),
        (["http_proxy": proxy, "no_proxy": "x,*"], "http_proxy"), (["http_proxy": proxy, "no_proxy": " * "], "http_proxy"),
        (["http_proxy": proxy, "no_proxy": "127.0.0.1:80"], "http_proxy"),
        (["http_proxy": proxy, "no_proxy": "x", "NO_PROXY": "127.0.0.1"], "http_proxy"),
    ])
    func `A proxy that would read a request is named, without its password`(
        environment: [String: String], variable: String
    ) throws {
        let objection = EnvironmentProxy.objection(toPlainRequestTo: "127.0.0.1", in: environment)
        #expect(try #require(objection).contains("\(variable) "))
        #expect(objection?.contains("SECRET") == false)
        #expect(objection?.contains("127.0.0.1") == true)
    }

    @Test(arguments: [
        [:], ["http_proxy": ""], ["HTTP_PROXY": proxy], ["https_proxy": proxy, "HTTPS_PROXY": proxy],
        ["http_proxy": proxy, "no_proxy": "*"], ["http_proxy": proxy, "no_proxy": "127.0.0.1"],
        ["all_proxy": proxy, "no_proxy": "x, 127.0.0.1"], ["ALL_PROXY": proxy, "no_proxy": "x 127.0.0.1"],
        ["http_proxy": proxy, "NO_PROXY": "127.0.0.1"], ["http_proxy": proxy, "no_proxy": "", "NO_PROXY": "127.0.0.1"],
    ])
    func `An environment without a proxy for the host is no hindrance`(environment: [String: String]) {
        #expect(EnvironmentProxy.objection(toPlainRequestTo: "127.0.0.1", in: environment) == nil)
    }

    @Test func `Names of hosts have no case`() {
        let environment = ["http_proxy": Self.proxy, "no_proxy": "LocalHost"]
        #expect(EnvironmentProxy.objection(toPlainRequestTo: "LOCALHOST", in: environment) == nil)
    }

    // In a process of its own, for it changes its environment.
    @Test func `No secret goes through a proxy in clear`() async {
        await #expect(processExitsWith: .success) {
            let proxy = try LoopbackServer(answering: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
            let server = try LoopbackServer(answering: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            let request = TokenRequest(url: server.url, headers: ["Authorization": "Basic c2VjcmV0"], body: Data("a=b".utf8))
            _ = unsafe unsetenv("no_proxy")
            _ = unsafe setenv("http_proxy", "http://127.0.0.1:\(proxy.url.port ?? 0)", 1)
            let error = await #expect(throws: OAuthError.self) { try await URLSessionTransport().send(request) }
            #expect(error?.code == .invalidConfiguration)
            #expect(error.map { "\($0)" }?.contains("add 127.0.0.1 to no_proxy") == true)
            _ = unsafe setenv("no_proxy", "127.0.0.1", 1)
            #expect(try await URLSessionTransport().send(request).body == Data("ok".utf8), "read anew at each request")
        }
    }
}
#endif
