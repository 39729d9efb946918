import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Synchronization
import Testing

/// Three real nodes, one or two of which fail.
@Suite(.enabled(if: Cluster.hasThreeNodes, "start them with .ci/start-etcd start DIR 3"), .serialized)
struct EtcdClusterTests {
    let cluster: Cluster

    init() throws {
        cluster = try #require(Cluster.inEnvironment)
    }

    // At its end the trial loads, and checks that the history is one of a register, so that no acknowledged swap is lost.
    @Test(.timeLimit(.minutes(1)), arguments: [SIGKILL, SIGSTOP])
    func `when the leader is killed or stopped, callers go on and no acknowledged swap is lost`(signal: Int32) async throws {
        let trial = try await SharedStoreTrial(cluster.stores(6, timeLimit: .seconds(1)))
        try await cluster.restoring {
            let report = try await withThrowingTaskGroup(of: SharedStoreReport?.self) { group in
                let isOver = Flag()
                group.addTask { try await trial.run(callers: 6) { _ in !isOver.isSet } }
                group.addTask {
                    defer { isOver.set() }
                    try await progress(of: trial)
                    let leader = try await cluster.leader()
                    try cluster.signal(leader, signal)
                    // The remaining nodes elect another leader. Until then any operations may fail, or none.
                    _ = try await eventually { try await cluster.leader(except: leader) }
                    try await progress(of: trial, swaps: 40)
                    return nil
                }
                return try await group.reduce(into: nil) { $0 = $0 ?? $1 }
            }
            #expect(try #require(report).swaps >= 60, "\(report as Any)")
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a stopped follower costs its callers one time-out, and no later delay`() async throws {
        let leader = try await cluster.leader(), follower = (leader + 1) % 3
        try await cluster.restoring {
            try cluster.signal(follower, SIGSTOP)
            let store = try cluster.stores(3, timeLimit: .seconds(1))[follower]
            let start = ContinuousClock.now
            #expect(try await store.load() == nil)
            let first = ContinuousClock.now
            guard case .done = try await store.swap(Data("x".utf8), ifAt: nil) else { throw Cluster.NoLeader() }
            let second = ContinuousClock.now
            #expect((.seconds(1)..<Duration.seconds(3)).contains(first - start), "\(first - start)")
            #expect(second - first < .seconds(1), "\(second - first)")
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `without a majority an operation ends within a service's 5 s, and nothing is written`() async throws {
        let stores = try cluster.stores(3)
        guard case .done(let revision) = try await stores[0].swap(Data("x".utf8), ifAt: nil) else { throw Cluster.NoLeader() }
        try await cluster.restoring {
            try cluster.signal(1, SIGKILL)
            try cluster.signal(2, SIGKILL)
            let start = ContinuousClock.now
            // Both at once; the one remaining node can answer neither.
            let load = Task { try await stores[0].load() }
            let swap = Task { try await stores[0].swap(Data("y".utf8), ifAt: revision) }
            let loadError = await #expect(throws: EtcdError.self) { try await load.value }
            let swapError = await #expect(throws: EtcdError.self) { try await swap.value }
            let time = ContinuousClock.now - start
            #expect(time < .seconds(5), "\(time)")
            // After the time-out, the load has tried the other nodes, which aren't running.
            #expect(loadError.map { [.timedOut, .unavailable, .unreachable].contains($0.code) } == true)
            #expect(swapError.map { [.timedOut, .unavailable].contains($0.code) && $0.isOutcomeUnknown } == true)
        }
        // The swap may have waited in the node's log: it was either performed completely or not at all.
        let record = try #require(try await eventually { try await stores[1].load() })
        #expect([Data("x".utf8), Data("y".utf8)].contains(record.bytes))
    }
}

/// Is set once.
final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}

/// Waits until a trial has performed this many more swaps.
func progress(of trial: SharedStoreTrial, swaps: Int = 20) async throws {
    let goal = trial.report.swaps + swaps
    while trial.report.swaps < goal { try await Task.sleep(for: .milliseconds(5)) }
}
