import AccessTokensHTTP
import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

struct AuthenticationTests {
    let etcd = FakeEtcd()

    init() {
        etcd.state.withLock { $0.tokens = [] }
    }

    var authentications: Int { etcd.state.withLock { $0.authentications } }

    @Test func `an etcd token is fetched once and kept`() async throws {
        let store = try EtcdTokenStore(etcd, user: EtcdTokenStore.app)
        guard case .done(let revision) = try await store.swap(Data("a".utf8), ifAt: nil) else { throw CancellationError() }
        #expect(try await store.load() == SharedRecord(Data("a".utf8), revision: revision))
        #expect(authentications == 1)
        #expect(etcd.state.withLock { $0.requests } == 3)
    }

    @Test func `an etcd token that the server has forgotten is renewed, and the operation is repeated`() async throws {
        let store = try EtcdTokenStore(etcd, user: EtcdTokenStore.app)
        #expect(try await store.load() == nil)
        etcd.state.withLock { $0.tokens = [] }
        guard case .done = try await store.swap(Data(), ifAt: nil) else { throw CancellationError() }
        etcd.state.withLock { $0.tokens = [] }
        #expect(try await store.load() != nil)
        #expect(authentications == 3)
    }

    @Test(arguments: [
        (401, 16, "invalid auth token"), (400, 3, "user name is empty"), (400, 3, "revision of auth store is old"),
        (500, 2, "invalid auth token"),
    ])
    func `an etcd token is renewed only once for an operation`(status: Int, code: Int, words: String) async throws {
        let etcd = ScriptedEtcd(by: { request in
            request.url.lastPathComponent == "authenticate" ? .token("abc.1") : .refused(status, code, words)
        })
        let store = try EtcdTokenStore(etcd, endpoints: 2, user: EtcdTokenStore.app)
        let error = try await failure { _ = try await store.swap(Data(), ifAt: nil) }
        #expect(error.code == .authenticationFailed && !error.isOutcomeUnknown && "\(error)".contains(words))
        #expect(etcd.requests.map(\.url.lastPathComponent) == ["authenticate", "txn", "authenticate", "txn"])
    }

    @Test func `a 401 without an etcd error also renews the etcd token`() async throws {
        let etcd = ScriptedEtcd({ .token("abc.1") }, { TransportResponse(401, "") }, { .token("abc.2") }, { .done })
        let store = try EtcdTokenStore(etcd, user: EtcdTokenStore.app)
        #expect(try await store.swap(Data(), ifAt: nil) == .done(.init("10")))
        #expect(etcd.requests.map { $0.headers["Authorization"] } == [nil, "abc.1", nil, "abc.2"])
    }

    @Test func `a wrong password is an error that says so without showing it`() async throws {
        let store = try EtcdTokenStore(etcd, user: (name: "app", password: "wrong-password"))
        let error = try await failure { _ = try await store.load() }
        #expect(error.code == .authenticationFailed && "\(error)".contains("invalid user ID or password"))
        #expect(!texts(error).contains("wrong-password"))
    }

    @Test func `a user for a server without authentication is an error`() async throws {
        let etcd = ScriptedEtcd { .refused(412, 9, "authentication is not enabled") }
        let error = try await failure { _ = try await EtcdTokenStore(etcd, user: EtcdTokenStore.app).load() }
        #expect(error.code == .authenticationFailed && "\(error)".contains("not enabled"))
    }

    @Test(arguments: Trouble.ofOneEndpoint)
    func `an endpoint that can't authenticate is passed over, also by a swap`(trouble: Trouble) async throws {
        let etcd = ScriptedEtcd(by: { request in
            if request.url.host == "etcd-0.example" { return try trouble.answer() }
            return request.url.lastPathComponent == "authenticate" ? .token("abc.1") : .done
        })
        let store = try EtcdTokenStore(etcd, endpoints: 2, user: EtcdTokenStore.app)
        #expect(try await store.swap(Data(), ifAt: nil) == .done(.init("10")))
        #expect(
            etcd.log == [
                "etcd-0.example/v3/auth/authenticate", "etcd-1.example/v3/auth/authenticate", "etcd-1.example/v3/kv/txn",
            ])
    }

    @Test func `many callers whose token is forgotten all succeed`() async throws {
        let store = try EtcdTokenStore(etcd, user: EtcdTokenStore.app)
        #expect(try await store.load() == nil)
        etcd.state.withLock { $0.tokens = [] }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { _ = try await store.load() } }
            try await group.waitForAll()
        }
        // Callers that are refused after a renewal use the new token.
        #expect(authentications <= 21)
    }
}
