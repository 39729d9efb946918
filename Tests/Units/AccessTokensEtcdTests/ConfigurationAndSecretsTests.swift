import AccessTokensHTTP
import AccessTokens
import AccessTokensEtcd
import Foundation
import Testing

struct ConfigurationTests {
    func problem(_ endpoints: [String], key: String = "k", user: (name: String, password: String)? = nil, plain: Bool = false)
        throws -> String?
    {
        let urls = try endpoints.map { try #require(URL(string: $0)) }
        do {
            _ = try EtcdTokenStore(key: key, endpoints: urls, user: user, allowsPlainHTTP: plain)
            return nil
        } catch let error as EtcdError {
            #expect(error.code == .invalidConfiguration && !"\(error)".contains("hush"))
            return "\(error)"
        }
    }

    @Test(arguments: [
        ("http://etcd.example:2379", "https"), ("ftp://etcd.example", "http or https"), ("etcd.example:2379", "http or https"),
        ("https://me:hush@etcd.example", "user or a password"), ("https://etcd.example?a=hush", "query"),
        ("https://etcd.example#hush", "fragment"), ("https:///v3", "host"), ("unix:///run/etcd.sock", "http or https"),
    ])
    func `an endpoint that endangers secrets or is no valid URL is refused`(url: String, reason: String) throws {
        #expect(try problem([url])?.contains(reason) == true)
        #expect(try problem(["https://etcd.example", url])?.contains(reason) == true)
    }

    @Test func `plain HTTP is accepted for this machine, or if the program asks for it`() throws {
        #expect(
            try problem(["http://127.0.0.1:2379", "http://[::1]:2379", "http://localhost", "https://etcd.example/gate"]) == nil)
        #expect(try problem(["http://10.0.0.1:2379"], plain: true) == nil)
    }

    @Test func `a key, an endpoint and a complete user are required`() throws {
        #expect(try problem([])?.contains("no endpoints") == true)
        #expect(try problem(["https://etcd.example"], key: "")?.contains("key") == true)
        for user in [(name: "", password: "hush"), (name: "app", password: "")] {
            #expect(try problem(["https://etcd.example"], user: user)?.contains("empty") == true)
        }
    }

    @Test func `an endpoint may have a path`() async throws {
        let etcd = ScriptedEtcd { .none }
        for path in ["", "/", "/gate", "/gate/"] {
            let url = try #require(URL(string: "https://etcd.example\(path)"))
            _ = try await EtcdTokenStore(key: "k", endpoints: [url], transport: etcd).load()
        }
        #expect(etcd.requests.map(\.url.path) == ["/v3/kv/range", "/v3/kv/range", "/gate/v3/kv/range", "/gate/v3/kv/range"])
    }
}

struct SecretsTests {
    static let password = "xyzzy-password", token = "xyzzy-token.7"

    // A record carries a refresh token, a request the password or etcd's token.
    @Test func `stores, users, requests and answers don't show what they carry`() async throws {
        let etcd = ScriptedEtcd(by: { $0.url.lastPathComponent == "authenticate" ? .token(Self.token) : .done })
        let user = (name: "app", password: Self.password)
        let store = try EtcdTokenStore(etcd, user: user)
        _ = try await store.swap(Data("xyzzy-record".utf8), ifAt: nil)
        #expect(etcd.requests.count == 2)
        let answer = TransportResponse(200, "xyzzy-answer")
        let everything = texts(store) + texts(etcd.requests) + texts(answer) + texts(SystemEtcdTransport())
        #expect(!everything.contains("xyzzy") && !everything.contains(Data("xyzzy-record".utf8).base64EncodedString()))
    }

    @Test(arguments: [400, 401, 403, 500, 503])
    func `a secret that the server or the transport echoes is hidden`(status: Int) async throws {
        let user = (name: "app", password: Self.password)
        let echoes = ScriptedEtcd(by: {
            $0.url.lastPathComponent == "authenticate"
                ? .token(Self.token) : .refused(status, 2, "no \(Self.password)\u{301} and \(Self.token)\\u0007!")
        })
        let echoed = try await failure { _ = try await EtcdTokenStore(echoes, user: user).load() }
        #expect(!texts(echoed).contains("xyzzy") && "\(echoed)".contains("[hidden]"))

        struct Leaky: Error { let header = SecretsTests.token, body = SecretsTests.password }
        let leaks = ScriptedEtcd({ .token(Self.token) }, { throw Leaky() })
        let leaked = try await failure { _ = try await EtcdTokenStore(leaks, user: user).load() }
        #expect(!texts(leaked).contains("xyzzy") && leaked.underlying is Leaky)
    }

    @Test func `every error code says what to do`() async throws {
        let troubles = Trouble.ofOneEndpoint + Trouble.ofTheRequest
        for trouble in troubles {
            let error = try await failure { _ = try await EtcdTokenStore(ScriptedEtcd(trouble.answer)).load() }
            #expect("\(error)".contains("etcd-0.example") && ["Check", "Give", "Try again"].contains { "\(error)".contains($0) })
            #expect(error.localizedDescription == "\(error)" && texts(error).contains("\(error)"))
        }
    }
}
