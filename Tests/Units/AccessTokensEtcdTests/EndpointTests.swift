import AccessTokensHTTP
import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import Foundation
import Testing

/// A way in which an endpoint fails a request.
struct Trouble: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let code: EtcdError.Code
    /// Whether a swap may have taken effect.
    let isUnknown: Bool
    let answer: @Sendable () throws -> TransportResponse

    init(_ name: String, _ code: EtcdError.Code, isUnknown: Bool, _ answer: @escaping @Sendable () throws -> TransportResponse) {
        (testDescription, self.code, self.isUnknown, self.answer) = (name, code, isUnknown, answer)
    }

    struct Lost: Error {}

    static let ofOneEndpoint = [
        Trouble("not sent", .unreachable, isUnknown: false) { throw TransportError.notSent("connection refused") },
        Trouble("lost", .connectionLost, isUnknown: true) { throw Lost() },
        Trouble("500", .unavailable, isUnknown: true) { .refused(500, 2, "request timed out") },
        Trouble("503", .unavailable, isUnknown: true) { .refused(503, 14, "no leader") },
        Trouble("504", .unavailable, isUnknown: true) { .refused(504, 4, "request timed out, possibly due to connection lost") },
        Trouble("502 of a proxy", .unavailable, isUnknown: true) { TransportResponse(502, "<html>Bad Gateway") },
        Trouble("nonsense", .unreadableAnswer, isUnknown: true) { TransportResponse("{}") },
    ]

    static let ofTheRequest = [
        Trouble("denied", .permissionDenied, isUnknown: false) { .refused(403, 7, "permission denied") },
        Trouble("too large", .refused, isUnknown: false) { .refused(400, 3, "request is too large") },
        Trouble("no space", .refused, isUnknown: true) { .refused(429, 8, "mvcc: database space exceeded") },
        Trouble("404", .refused, isUnknown: false) { TransportResponse(404, "Not Found") },
        Trouble("redirect", .refused, isUnknown: true) { TransportResponse(307, "") },
        Trouble("no user", .authenticationFailed, isUnknown: false) { .refused(400, 3, "user name is empty") },
        Trouble("no token", .authenticationFailed, isUnknown: false) { .refused(401, 16, "invalid auth token") },
    ]
}

struct EndpointTests {
    /// An etcd whose first endpoint has trouble.
    func etcd(_ trouble: Trouble, else answer: TransportResponse) -> ScriptedEtcd {
        ScriptedEtcd(by: { $0.url.host == "etcd-0.example" ? try trouble.answer() : answer })
    }

    @Test(arguments: Trouble.ofOneEndpoint)
    func `a load that fails at one endpoint goes to the next`(trouble: Trouble) async throws {
        let etcd = etcd(trouble, else: .record)
        let store = try EtcdTokenStore(etcd, endpoints: 3)
        #expect(try await store.load() != nil)
        #expect(etcd.log == ["etcd-0.example/v3/kv/range", "etcd-1.example/v3/kv/range"])
        // From then on the next endpoint is asked first.
        #expect(try await store.load() != nil)
        #expect(etcd.log.last == "etcd-1.example/v3/kv/range" && etcd.log.count == 3)
    }

    @Test(arguments: Trouble.ofOneEndpoint)
    func `a swap goes to the next endpoint only if it was not sent`(trouble: Trouble) async throws {
        let etcd = etcd(trouble, else: .done)
        let store = try EtcdTokenStore(etcd, endpoints: 2)
        if trouble.isUnknown {
            let error = try await failure { _ = try await store.swap(Data(), ifAt: .init("7")) }
            #expect(error.code == trouble.code && error.isOutcomeUnknown && "\(error)".contains("read it again"))
            #expect(etcd.requests.count == 1)
            // The load that settles it begins at the other endpoint.
            _ = try? await store.load()
            #expect(etcd.log.last == "etcd-1.example/v3/kv/range")
        } else {
            #expect(try await store.swap(Data(), ifAt: .init("7")) == .done(.init("10")))
            #expect(etcd.requests.count == 2)
        }
    }

    @Test(arguments: Trouble.ofTheRequest)
    func `a request that every endpoint would refuse is sent once`(trouble: Trouble) async throws {
        let etcd = etcd(trouble, else: .record)
        let store = try EtcdTokenStore(etcd, endpoints: 2)
        let load = try await failure { _ = try await store.load() }
        #expect(load.code == trouble.code && !load.isOutcomeUnknown && etcd.requests.count == 1)
        let swap = try await failure { _ = try await store.swap(Data(), ifAt: .init("7")) }
        #expect(swap.code == trouble.code && swap.isOutcomeUnknown == trouble.isUnknown && etcd.requests.count == 2)
    }

    @Test func `when no endpoint answers, the error is the last one's`() async throws {
        let etcd = ScriptedEtcd { throw TransportError.notSent("connection refused") }
        let store = try EtcdTokenStore(etcd, endpoints: 3)
        let error = try await failure { _ = try await store.swap(Data(), ifAt: nil) }
        #expect(error.code == .unreachable && error.endpoint == "https://etcd-2.example:2379" && etcd.requests.count == 3)
    }

    @Test func `an endpoint that comes back is asked again in its turn`() async throws {
        let etcd = ScriptedEtcd(
            { throw TransportError.notSent("1") }, { throw TransportError.notSent("2") }, { .record }, { .record })
        let store = try EtcdTokenStore(etcd, endpoints: 2)
        _ = try? await store.load()
        #expect(try await store.load() != nil)
        let asked = etcd.log.map { $0.prefix(6) }
        #expect(asked == ["etcd-0", "etcd-1", "etcd-0"])
    }

    @Test func `a cancelled caller gets its cancellation, and no other endpoint is asked`() async throws {
        let etcd = ScriptedEtcd { throw CancellationError() }
        let store = try EtcdTokenStore(etcd, endpoints: 2)
        await #expect(throws: CancellationError.self) { _ = try await store.load() }
        await #expect(throws: CancellationError.self) { _ = try await store.swap(Data(), ifAt: nil) }
        #expect(etcd.requests.count == 2)
        let task = Task { try await store.load() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
