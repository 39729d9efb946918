import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// Three real nodes, each with a network of its own, whose connections break.
@Suite(
    .enabled(if: Cluster.hasHosts, "start the nodes with .ci/start-etcd start DIR 3 hosts, as root"),
    .serialized)
struct EtcdPartitionTests {
    let cluster: Cluster

    init() throws {
        cluster = try #require(Cluster.inEnvironment)
    }

    // Its clients still reach the old leader, which takes itself for the leader until its lease has run out.
    @Test(.timeLimit(.minutes(1)))
    func `a leader that is parted from the other nodes answers nobody from what it still has`() async throws {
        let leader = try await cluster.leader(), others = [0, 1, 2].filter { $0 != leader }
        let key = "/tokens/\(UUID())"
        let stores = try cluster.endpoints.map {
            try EtcdTokenStore(key: key, endpoints: [$0], timeLimit: .seconds(1), allowsPlainHTTP: true)
        }
        guard case .done(let revision) = try await stores[leader].swap(Data("old".utf8), ifAt: nil) else {
            throw Cluster.NoLeader()
        }
        try await cluster.restoring {
            try await cluster.script("part", leader)
            await #expect(throws: EtcdError.self) { try await stores[leader].load() }
            await #expect(throws: EtcdError.self) { try await stores[leader].swap(Data("lost".utf8), ifAt: revision) }
            let new = try await eventually { () -> SharedRecord.Revision in
                switch try await stores[others[0]].swap(Data("new".utf8), ifAt: revision) {
                case .done(let revision): revision
                // An earlier try's answer was lost.
                case .conflict(let record): try #require(record).revision
                }
            }
            await #expect(throws: EtcdError.self) { try await stores[leader].load() }
            try await cluster.script("rejoin", leader)
            let record = try #require(try await eventually { try await stores[leader].load() })
            #expect(
                record == SharedRecord(Data("new".utf8), revision: new), "what the parted leader was asked to write is not there")
        }
    }

    /// Every fault at random, one after the other, while callers at all nodes load and swap.
    ///
    /// `ETCD_FAULTS` says how many, 5 unless it is set; `ETCD_FAULT_SEED` repeats their order.
    @Test func `in a storm of killed, stopped and parted nodes the record stays one record`() async throws {
        let environment = ProcessInfo.processInfo.environment
        let count = environment["ETCD_FAULTS"].flatMap { Int($0) } ?? 5
        let seed = environment["ETCD_FAULT_SEED"].flatMap { UInt64($0) } ?? .random(in: .min ... .max)
        var random = SplitMix64(seed: seed), reports: [SharedStoreReport] = []
        try await cluster.restoring {
            for _ in 0..<count {
                let fault = Fault(of: 3, random: &random)
                let report = try await withThrowingTaskGroup(of: SharedStoreReport?.self) { [cluster] group in
                    // A record for each fault: what the last one left without an answer may be written later.
                    let trial = try await eventually { try await SharedStoreTrial(cluster.stores(6, timeLimit: .seconds(1))) }
                    let isOver = Flag()
                    group.addTask {
                        // Its first load may still meet an election.
                        let outcome = try await eventually { () -> Result<SharedStoreReport, SharedStoreViolation> in
                            do {
                                return .success(try await trial.run(callers: 6) { _ in !isOver.isSet })
                            } catch let violation as SharedStoreViolation {
                                return .failure(violation)
                            }
                        }
                        return try outcome.get()
                    }
                    group.addTask {
                        defer { isOver.set() }
                        try await progress(of: trial)
                        try await fault.strike(cluster)
                        try await progress(of: trial)
                        return nil
                    }
                    return try await group.reduce(into: nil) { $0 = $0 ?? $1 }
                }
                reports.append(try #require(report, "\(fault), ETCD_FAULT_SEED=\(seed)"))
            }
        }
        let swaps = reports.map(\.swaps).reduce(0, +), failures = reports.map(\.failures).reduce(0, +)
        print("ETCD_FAULT_SEED=\(seed): \(count) faults, \(swaps) swaps, \(failures) operations without an answer")
        #expect(reports.count == count && reports.allSatisfy { $0.swaps >= 40 })
    }
}

/// What happens to some nodes for a while.
private struct Fault: Sendable {
    enum Kind: CaseIterable { case killed, stopped, parted }

    let kind: Kind
    let nodes: [Int]
    let duration: Duration

    /// One to all of the nodes; too short a time for an election, or long enough for one.
    init(of count: Int, random: inout SplitMix64) {
        kind = Kind.allCases.randomElement(using: &random) ?? .killed
        nodes = Array(Array(0..<count).shuffled(using: &random).prefix(Int.random(in: 1...count, using: &random)))
        duration = .milliseconds(Int.random(in: 100...3_000, using: &random))
    }

    func strike(_ cluster: Cluster) async throws {
        for node in nodes {
            switch kind {
            case .killed: try cluster.signal(node, SIGKILL)
            case .stopped: try cluster.signal(node, SIGSTOP)
            case .parted: try await cluster.script("part", node)
            }
        }
        try await Task.sleep(for: duration)
        for node in nodes {
            switch kind {
            case .killed: try await cluster.script("restart", node)
            case .stopped: try cluster.signal(node, SIGCONT)
            case .parted: try await cluster.script("rejoin", node)
            }
        }
    }
}
