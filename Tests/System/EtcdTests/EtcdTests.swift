import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing

/// A real etcd of any size, with authentication or without.
@Suite(.enabled(if: Cluster.isThere, "start one with .ci/start-etcd"), .serialized)
struct EtcdTests {
    let cluster: Cluster

    init() throws {
        cluster = try #require(Cluster.inEnvironment)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a real etcd is a linearizable register for many callers`() async throws {
        let report = try await checkSharedTokenStore(cluster.stores(6), callers: 6, rounds: 20)
        #expect(report.failures == 0 && report.swaps >= 20 && report.conflicts > 0, "\(report)")
    }

    @Test(arguments: [Data(), Data([0]), Data((0...255).map { UInt8($0) }), Data(repeating: 0xFF, count: 1_000_000)])
    func `a record comes back as it was written`(bytes: Data) async throws {
        let store = try #require(cluster.stores(1).first)
        #expect(try await store.load() == nil)
        guard case .done(let revision) = try await store.swap(bytes, ifAt: nil) else { throw Cluster.NoLeader() }
        #expect(try await store.load() == SharedRecord(bytes, revision: revision))
        #expect(try await store.swap(Data("x".utf8), ifAt: nil) == .conflict(SharedRecord(bytes, revision: revision)))
    }

    @Test func `a record that etcd finds too large is refused and not written`() async throws {
        let store = try #require(cluster.stores(1).first)
        let error = try await #require(throws: EtcdError.self) { try await store.swap(Data(count: 1_600_000), ifAt: nil) }
        #expect(error.code == .refused && !error.isOutcomeUnknown && "\(error)".contains("too large"), "\(error)")
        #expect(try await store.load() == nil)
    }

    @Test(.timeLimit(.minutes(1)))
    func `services on three hosts that share a rotating refresh token never spend one twice`() async throws {
        let clock = ManualClock(), rounds = 10
        let server = SimulatedAuthorizationServer(clock: clock, rotatesRefreshTokens: true)
        // A record contains the wall time of its load, so the two clocks advance together.
        let environment = TokenService.Environment(
            clock: clock, wallClock: { Date(timeIntervalSinceReferenceDate: clock.now.offset / .seconds(1)) })
        let services = try cluster.stores(3).map {
            TokenService(sharedStore: $0, environment: environment, loader: server.loader)
        }
        _ = await services[0].replace(with: server.signIn())
        for round in 1...rounds {
            clock.advance(by: .seconds(3600))
            let tokens = try await withThrowingTaskGroup(of: String.self) { group in
                for service in services { group.addTask { try await service.retrieveToken().value } }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(tokens.count == 1 && server.refreshes == round)
        }
        #expect(server.reuseDetected == 0)
    }

    @Test func `a change through another store ends a wait`() async throws {
        let stores = try cluster.stores(2)
        async let wait = stores[0].changedRecord(from: nil, atMost: .seconds(30))
        let start = ContinuousClock.now
        _ = try await stores[1].swap(Data("x".utf8), ifAt: nil)
        _ = try await wait
        #expect(ContinuousClock.now - start < .seconds(10))
    }
}

/// A real etcd that asks for a name and a password.
@Suite(.enabled(if: Cluster.hasAuthentication, "start one with .ci/start-etcd … auth"))
struct EtcdAuthenticationTests {
    let cluster: Cluster

    init() throws {
        cluster = try #require(Cluster.inEnvironment)
    }

    func store(key: String = "/tokens/\(UUID())", user: (name: String, password: String)?) throws -> EtcdTokenStore {
        try EtcdTokenStore(key: key, endpoints: cluster.endpoints, user: user)
    }

    @Test func `without a user, or with a wrong password, etcd lets nothing be read or written`() async throws {
        for user in [nil, (name: "app", password: "wrong"), (name: "nobody", password: "wrong")] {
            let load = try await #require(throws: EtcdError.self) { try await store(user: user).load() }
            let swap = try await #require(throws: EtcdError.self) { try await store(user: user).swap(Data(), ifAt: nil) }
            #expect(load.code == .authenticationFailed && swap.code == .authenticationFailed && !swap.isOutcomeUnknown)
        }
    }

    @Test func `a key that the user's role does not name is denied`() async throws {
        let store = try store(key: "/others/\(UUID())", user: cluster.user)
        let load = try await #require(throws: EtcdError.self) { try await store.load() }
        let swap = try await #require(throws: EtcdError.self) { try await store.swap(Data(), ifAt: nil) }
        #expect(load.code == .permissionDenied && swap.code == .permissionDenied && !swap.isOutcomeUnknown)
    }

    @Test func `a store continues after its etcd tokens became invalid`() async throws {
        let store = try store(user: cluster.user)
        guard case .done(let revision) = try await store.swap(Data("a".utf8), ifAt: nil) else { throw Cluster.NoLeader() }
        // A restarted node has forgotten the tokens that it issued.
        try await cluster.restoring {}
        guard case .done(let next) = try await store.swap(Data("b".utf8), ifAt: revision) else { throw Cluster.NoLeader() }
        #expect(try await store.load() == SharedRecord(Data("b".utf8), revision: next))
    }
}
