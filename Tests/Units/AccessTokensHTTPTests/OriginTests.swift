import Foundation
import Testing
import AccessTokensHTTP

@Suite struct `The origin of a URL` {
    @Test(arguments: [
        ("https://example.com/path?q", "https://example.com:443"), ("HTTP://LOCALHOST", "http://localhost:80"),
        ("http://[::1]:8080", "http://[::1]:8080"), ("https://a:0443", "https://a:443"),
    ])
    func `is its scheme, host and port`(text: String, origin: String) throws {
        #expect(try Origin(#require(URL(string: text)))?.description == origin)
    }

    @Test(arguments: ["ftp://127.0.0.1", "https://", "/path", "https://me@example.com", "https://me:secret@example.com"])
    func `exists for http and https only, without user and password`(text: String) throws {
        #expect(try Origin(#require(URL(string: text))) == nil)
    }

    @Test(arguments: [
        ("https://example.com", true), ("http://localhost", true), ("http://127.255.0.1", true), ("http://[::1]", true),
        ("http://example.com", false), ("http://localhost.example.com", false), ("http://127.0.0.1.example.com", false),
        ("http://127.1", false), ("http://0127.0.0.1", false), ("http://127.0.0.01", false), ("http://+127.0.0.1", false),
        ("http://128.0.0.1", false), ("http://0.0.0.0", false),
    ])
    func `is private with TLS, or on this machine`(text: String, isPrivate: Bool) throws {
        #expect(try Origin(#require(URL(string: text)))?.isPrivate == isPrivate)
    }
}

@Suite struct `The normal form of a URL` {
    @Test(arguments: [
        "http://a/", "https://api.example.com:8443/Movies/List?Q=A/.b#F", "http://127.0.0.1:80/a:b//c", "http://[::1]:80/x",
        "http://a", "http://a?Q",
    ])
    func `is the URL itself if nothing in it has another spelling`(text: String) throws {
        #expect(try #require(URL(string: text)).normalized.absoluteString == text)
    }

    @Test(arguments: [
        ("HTTP://A/B", "http://a/B"), ("http://A/B", "http://a/B"), ("http://a:/b", "http://a/b"),
        ("http://a:080/b", "http://a:80/b"), ("http://a/b/../c", "http://a/c"), ("http://a/./c", "http://a/c"),
        ("http://a/%2e%2e/c", "http://a/c"), ("http://a/%c3%a4", "http://a/%C3%A4"),
    ])
    func `replaces every other spelling`(text: String, normal: String) throws {
        #expect(try #require(URL(string: text)).normalized.absoluteString == normal)
    }

    @Test func `is absolute`() throws {
        let url = try #require(URL(string: "b", relativeTo: URL(string: "http://a/c")))
        #expect(url.normalized.absoluteString == "http://a/b" && url.normalized.baseURL == nil)
    }
}

@Suite struct `The headers of an answer` {
    // RFC 9110 §5.1, §5.2.
    @Test func `are found whatever their case, and joined if a transport keeps several`() {
        let headers = ["WWW-Authenticate": "Basic a", "www-authenticate": "DPoP b", "Date": "now"]
        for name in ["Www-Authenticate", "WWW-Authenticate"] {
            #expect(["Basic a, DPoP b", "DPoP b, Basic a"].contains(headers.header(name)))
        }
        #expect(headers.header("date") == "now" && headers.header("Age") == nil)
    }
}
