import AccessTokensHTTP
import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing

struct WaitForChangeTests {
    let clock = ManualClock()
    let stage = Stage()

    func store(_ etcd: any TokenTransport, endpoints: Int = 1) throws -> EtcdTokenStore {
        try EtcdTokenStore(etcd, endpoints: endpoints, environment: .init(clock: clock, seed: 1))
    }

    /// Waits on the stage; time passes in steps of 10 ms until it has returned, or 60 s have passed.
    func wait(
        _ etcd: ScriptedEtcd, endpoints: Int = 1, from revision: String?, atMost limit: Duration
    ) throws -> (time: Duration?, error: (any Error)?) {
        let store = try store(etcd, endpoints: endpoints)
        let waiting = stage.start { try await store.changedRecord(from: revision.map { .init($0) }, atMost: limit) }
        for step in 0...6_000 {
            if waiting.isDone { return (.milliseconds(10) * step, waiting.error) }
            clock.advance(by: .milliseconds(10))
            stage.run()
        }
        return (nil, nil)
    }

    @Test(arguments: [("7", nil), (nil, "7")] as [(String?, String?)])
    func `a wait ends when the record has changed`(known: String?, _: String?) throws {
        let etcd = ScriptedEtcd({ known == nil ? .none : .record }, { known == nil ? .record : .none })
        let (time, error) = try wait(etcd, from: known, atMost: .seconds(30))
        #expect(error == nil && etcd.requests.count == 2)
        #expect(try #require(time) <= .milliseconds(160))
    }

    @Test func `pauses grow to a second and no further`() throws {
        let etcd = ScriptedEtcd { .record }
        let (time, error) = try wait(etcd, from: "7", atMost: .seconds(30))
        #expect(error == nil && time == .seconds(30))
        // At least one request a second, at most two, and a few more in the first second.
        #expect((30...66).contains(etcd.requests.count), "\(etcd.requests.count)")
    }

    @Test(arguments: [Duration.zero, .milliseconds(-5), .milliseconds(10)])
    func `a short wait returns without a request`(limit: Duration) throws {
        let etcd = ScriptedEtcd { .record }
        let (time, error) = try wait(etcd, from: "7", atMost: limit)
        #expect(error == nil && etcd.requests.isEmpty && time == max(limit, .zero))
    }

    @Test(arguments: Trouble.ofOneEndpoint)
    func `a temporary failure doesn't end a wait, and the next endpoint is used`(trouble: Trouble) throws {
        let etcd = ScriptedEtcd(by: { $0.url.host == "etcd-0.example" ? try trouble.answer() : .none })
        let (time, error) = try wait(etcd, endpoints: 2, from: "7", atMost: .seconds(30))
        #expect(error == nil && etcd.log == ["etcd-0.example/v3/kv/range", "etcd-1.example/v3/kv/range"])
        #expect(try #require(time) < .seconds(1))
    }

    @Test(arguments: Trouble.ofTheRequest)
    func `any other failure ends the wait`(trouble: Trouble) throws {
        let (_, error) = try wait(ScriptedEtcd(trouble.answer), from: "7", atMost: .seconds(30))
        #expect((error as? EtcdError)?.code == trouble.code)
    }

    @Test func `no request of a wait outlasts the wait's limit`() throws {
        let etcd = ScriptedEtcd { .record }
        _ = try wait(etcd, from: "7", atMost: .seconds(5))
        #expect(etcd.requests.allSatisfy { $0.timeLimit <= .seconds(3) && $0.timeLimit > .zero })
        #expect(etcd.requests.contains { $0.timeLimit < .seconds(3) })
    }

    @Test func `cancellation ends a wait at once`() throws {
        let store = try store(ScriptedEtcd { .record })
        let waiting = stage.start { try await store.changedRecord(from: .init("7"), atMost: .seconds(30)) }
        #expect(!waiting.isDone)
        waiting.cancel()
        stage.run()
        #expect(waiting.isDone && waiting.error is CancellationError)
    }
}
