import AccessTokensHTTP
import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import Foundation
import Testing

struct UnreadableAnswerTests {
    static let range: [(String, String)] = [
        ("", "not JSON"), ("{", "not JSON"), (#"{"header":{"revision":"9"},"kvs":[{"key":"aw=="#, "not JSON"),
        ("<html>", "not JSON"),
        ("[]", "not a JSON object"), ("null", "JSON"), ("7", "not a JSON object"), ("{}", "header is missing"),
        (#"{"header":{}}"#, "revision is missing"), (#"{"header":7}"#, "header has the wrong type"),
        (#"{"header":{"revision":9}}"#, "revision has the wrong type"), (#"{"header":{"revision":"x"}}"#, "positive number"),
        (#"{"header":{"revision":"0"}}"#, "positive number"), (#"{"header":{"revision":"09"}}"#, "positive number"),
        (#"{"header":{"revision":"9"},"count":"1"}"#, "number of keys (0)"),
        (#"{"header":{"revision":"9"},"kvs":{}}"#, "kvs has the wrong type"),
        (#"{"header":{"revision":"9"},"kvs":[{"key":"aw==","mod_revision":"7"}]}"#, "number of keys (1)"),
        (#"{"header":{"revision":"9"},"kvs":[{"key":"aw=="}],"count":"1"}"#, "modRevision is missing"),
        (#"{"header":{"revision":"9"},"kvs":[{"mod_revision":"7"}],"count":"1"}"#, "key is missing"),
        (#"{"header":{"revision":"9"},"kvs":[{"key":"eA==","mod_revision":"7"}],"count":"1"}"#, "another key"),
        (#"{"header":{"revision":"9"},"kvs":[{"key":"aw==","mod_revision":7}],"count":"1"}"#, "modRevision has the wrong type"),
        (#"{"header":{"revision":"9"},"kvs":[{"key":"aw==","mod_revision":"seven"}],"count":"1"}"#, "positive number"),
        (#"{"header":{"revision":"9"},"kvs":[{"key":"aw==","mod_revision":"-7"}],"count":"1"}"#, "positive number"),
        (#"{"header":{"revision":"9"},"kvs":[{"key":"aw==","mod_revision":"99999999999999999999"}],"count":"1"}"#, "positive"),
        (
            #"{"header":{"revision":"9"},"kvs":[{"key":"aw==","mod_revision":"7","value":"%"}],"count":"1"}"#,
            "value has an invalid"
        ),
        (
            #"{"header":{"revision":"9"},"kvs":[{"key":"aw==","mod_revision":"7"},{"key":"aw==","mod_revision":"7"}],"count":"2"}"#,
            "number of keys (2)"
        ),
    ]

    @Test(arguments: range)
    func `an unreadable answer to a load is an error, not an absent record`(body: String, problem: String) async throws {
        let error = try await failure { _ = try await EtcdTokenStore(ScriptedEtcd { TransportResponse(body) }).load() }
        #expect(error.code == .unreadableAnswer && "\(error)".contains(problem), "\(error)")
        #expect(!error.isOutcomeUnknown && error.endpoint == "https://etcd-0.example:2379")
    }

    static let transaction: [(String, String)] = [
        ("", "not JSON"), ("{}", "header is missing"), (#"{"header":{"revision":"9"}}"#, "one result"),
        (#"{"header":{"revision":"9"},"succeeded":true}"#, "one result"),
        (#"{"header":{"revision":"9"},"succeeded":"true","responses":[{"response_put":{}}]}"#, "succeeded has the wrong type"),
        (#"{"header":{"revision":"9"},"succeeded":true,"responses":[{}]}"#, "without a write"),
        (#"{"header":{"revision":"9"},"succeeded":true,"responses":[{"response_put":{}},{"response_put":{}}]}"#, "one result"),
        (#"{"header":{"revision":"6"},"succeeded":true,"responses":[{"response_put":{}}]}"#, "backwards"),
        (#"{"header":{"revision":"5"},"succeeded":true,"responses":[{"response_put":{}}]}"#, "backwards"),
        (#"{"header":{"revision":"9"},"responses":[{"response_put":{}}]}"#, "without the current record"),
        (
            #"{"header":{"revision":"9"},"responses":[{"response_range":{"header":{"revision":"9"},"kvs":[{"key":"aw==","#
                + #""mod_revision":"6"}],"count":"1"}}]}"#, "the expected revision"
        ),
        (
            #"{"header":{"revision":"9"},"responses":[{"response_range":{"header":{"revision":"9"},"kvs":[{"key":"eA==","#
                + #""mod_revision":"7"}],"count":"1"}}]}"#, "another key"
        ),
    ]

    @Test(arguments: transaction)
    func `an unreadable answer to a swap leaves its outcome unknown`(body: String, problem: String) async throws {
        let etcd = ScriptedEtcd { TransportResponse(body) }
        let store = try EtcdTokenStore(etcd, endpoints: 2)
        let error = try await failure { _ = try await store.swap(Data(), ifAt: .init("6")) }
        #expect(error.code == .unreadableAnswer && "\(error)".contains(problem), "\(error)")
        #expect(error.isOutcomeUnknown && etcd.requests.count == 1)
    }

    @Test func `an answer that rejects a new record without a conflicting one is unreadable`() async throws {
        let answer = TransportResponse(
            #"{"header":{"revision":"9"},"responses":[{"response_range":{"header":{"revision":"9"}}}]}"#)
        let error = try await failure { _ = try await EtcdTokenStore(ScriptedEtcd { answer }).swap(Data(), ifAt: nil) }
        #expect(error.code == .unreadableAnswer)
    }

    @Test func `an answer longer than the limit isn't read`() async throws {
        let padding = String(repeating: " ", count: 4 << 20)
        let answer = TransportResponse(#"{"header":{"revision":"9"}}"# + padding)
        let error = try await failure { _ = try await EtcdTokenStore(ScriptedEtcd { answer }).load() }
        #expect(error.code == .unreadableAnswer && "\(error)".contains("longer"))
    }

    @Test(arguments: [#"{"header":{}}"#, #"{"token":""}"#, #"{"token":7}"#, #"{"token":"a\r\nb"}"#, #"{"token":"a b"}"#])
    func `an etcd token that can't be a header is refused`(body: String) async throws {
        let etcd = ScriptedEtcd { TransportResponse(body) }
        let error = try await failure { _ = try await EtcdTokenStore(etcd, user: EtcdTokenStore.app).load() }
        #expect(error.code == .unreadableAnswer && etcd.log == ["etcd-0.example/v3/auth/authenticate"])
    }
}
