#if canImport(FoundationNetworking)
import Testing
import AccessTokensHTTP

/// The environment's proxies are read as libcurl reads them, or more strictly.
@Suite struct `The environment's proxy` {
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
    func `names a proxy that would read a request, but not its password`(
        environment: [String: String], variable: String
    ) throws {
        let objection = EnvironmentProxy.objection(toPlainRequestTo: "127.0.0.1", in: { environment[$0] })
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
    func `permits a request to a host without a proxy`(environment: [String: String]) {
        #expect(EnvironmentProxy.objection(toPlainRequestTo: "127.0.0.1", in: { environment[$0] }) == nil)
    }

    @Test func `needs no more than five variables of the environment`() {
        var asked: Set<String> = []
        for proxy in [nil, Self.proxy] {
            _ = EnvironmentProxy.objection(toPlainRequestTo: "127.0.0.1") { variable in
                asked.insert(variable)
                return variable == "ALL_PROXY" ? proxy : nil
            }
        }
        #expect(asked == ["http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"])
    }

    @Test func `compares the names of hosts without case`() {
        let environment = ["http_proxy": Self.proxy, "no_proxy": "LocalHost"]
        #expect(EnvironmentProxy.objection(toPlainRequestTo: "LOCALHOST", in: { environment[$0] }) == nil)
    }
}
#endif
