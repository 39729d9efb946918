import AccessTokensHTTP
import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

struct EtcdTokenStoreTests {
    let record = SharedRecord(Data("v1".utf8), revision: .init("7"))

    @Test func `a load is one linearizable read of the key`() async throws {
        let etcd = ScriptedEtcd { .record }
        #expect(try await EtcdTokenStore(etcd).load() == record)
        #expect(etcd.log == ["etcd-0.example/v3/kv/range"])
        #expect(String(decoding: try #require(etcd.requests.first).body, as: UTF8.self) == #"{"key":"aw=="}"#)
        #expect(etcd.requests.first?.timeLimit == .seconds(3))
        #expect(etcd.requests.first?.headers["Authorization"] == nil)
    }

    @Test func `a load returns no record only if etcd says that there is none`() async throws {
        #expect(try await EtcdTokenStore(ScriptedEtcd { .none }).load() == nil)
        let explicit = TransportResponse(#"{"header":{"revision":"1"},"kvs":[],"count":"0","more":false}"#)
        #expect(try await EtcdTokenStore(ScriptedEtcd { explicit }).load() == nil)
    }

    @Test func `an empty record counts as a record`() async throws {
        let answer = TransportResponse(#"{"header":{"revision":"9"},"kvs":[{"key":"aw==","mod_revision":"7"}],"count":"1"}"#)
        #expect(try await EtcdTokenStore(ScriptedEtcd { answer }).load() == SharedRecord(Data(), revision: .init("7")))
    }

    @Test(arguments: [(nil, "0"), ("7", "7"), ("9223372036854775806", "9223372036854775806")] as [(String?, String)])
    func `a swap is one transaction that compares the revision`(revision: String?, compared: String) async throws {
        let etcd = ScriptedEtcd {
            TransportResponse(
                #"{"header":{"revision":"9223372036854775807"},"succeeded":true,"responses":[{"response_put":{}}]}"#)
        }
        let swap = try await EtcdTokenStore(etcd).swap(Data("v2".utf8), ifAt: revision.map { .init($0) })
        #expect(swap == .done(.init("9223372036854775807")))
        #expect(etcd.log == ["etcd-0.example/v3/kv/txn"])
        #expect(
            String(decoding: try #require(etcd.requests.first).body, as: UTF8.self)
                == #"{"compare":[{"key":"aw==","target":"MOD","result":"EQUAL","mod_revision":"\#(compared)"}],"#
                + #""success":[{"request_put":{"key":"aw==","value":"djI="}}],"failure":[{"request_range":{"key":"aw=="}}]}"#)
    }

    @Test func `a conflict returns the current record`() async throws {
        let store = try EtcdTokenStore(ScriptedEtcd { .conflict })
        #expect(try await store.swap(Data(), ifAt: .init("6")) == .conflict(record))
        #expect(try await store.swap(Data(), ifAt: nil) == .conflict(record))
        let gone = TransportResponse(#"{"header":{"revision":"9"},"responses":[{"response_range":{"header":{"revision":"9"}}}]}"#)
        #expect(try await EtcdTokenStore(ScriptedEtcd { gone }).swap(Data(), ifAt: .init("6")) == .conflict(nil))
    }

    @Test(arguments: ["", "x", "0", "-1", "9223372036854775808", "etag"])
    func `a revision that isn't one of etcd's is refused`(text: String) async throws {
        let etcd = ScriptedEtcd { .done }
        let error = try await failure { _ = try await EtcdTokenStore(etcd).swap(Data(), ifAt: .init(text)) }
        #expect(error.code == .invalidConfiguration && etcd.requests.isEmpty && !error.isOutcomeUnknown)
    }

    @Test(arguments: [0, 3, 7])
    func `the store is a linearizable register for compare and swap, even if answers are lost`(loses: Int) async throws {
        let etcd = FakeEtcd()
        let stores = try (0..<3).map { _ in try EtcdTokenStore(etcd, endpoints: 1) }
        let trial = try await SharedStoreTrial(stores)
        try await trial.runOneAtATime()
        etcd.state.withLock { $0.loses = loses }
        // The trial's own first and last load must succeed.
        etcd.state.withLock { $0.requests = 0 }
        let report = try await trial.run(callers: 6) { $0 < 20 }
        #expect(report.loads > 0 && report.swaps > 0 && (report.failures > 0) == (loses > 0))
    }

    @Test func `the store can't tell whether a process on another host runs`() async throws {
        let store = try EtcdTokenStore(ScriptedEtcd { .none })
        #expect(store.holder == nil)
        #expect(await store.isRunning("somebody") == nil)
    }
}
