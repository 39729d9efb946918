import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// Three real nodes, each with its own network, whose connections break.
@Suite(
    .enabled(if: Cluster.hasHosts, "start the nodes with .ci/start-etcd start DIR 3 hosts, as root"),
    .serialized)
struct EtcdPartitionTests {
    let cluster: Cluster

    init() throws {
        cluster = try #require(Cluster.inEnvironment)
    }

    // Its clients still reach the old leader, which considers itself the leader until its lease expires.
    @Test(.timeLimit(.minutes(1)))
    func `a leader cut off from the other nodes answers no load and no swap from its old data`() async throws {
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
                // The answer of an earlier attempt was lost.
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

    /// Every fault in random order, one after another, while callers at all nodes load and swap.
    ///
    /// `ETCD_FAULTS` says how many, 5 unless it is set; `ETCD_FAULT_SEED` repeats their order.
    @Test func `many killed, stopped and partitioned nodes leave the record linearizable`() async throws {
        let environment = ProcessInfo.processInfo.environment
        let count = environment["ETCD_FAULTS"].flatMap { Int($0) } ?? 5
        let seed = environment["ETCD_FAULT_SEED"].flatMap { UInt64($0) } ?? .random(in: .min ... .max)
        var random = SplitMix64(seed: seed), reports: [SharedStoreReport] = []
        try await cluster.restoring {
            for _ in 0..<count {
                let fault = Fault(of: 3, random: &random)
                let report = try await withThrowingTaskGroup(of: SharedStoreReport?.self) { [cluster] group in
                    // A record for each fault: a swap that the last fault left without an answer may take effect later.
                    let trial = try await eventually { try await SharedStoreTrial(cluster.stores(6, timeLimit: .seconds(1))) }
                    let isOver = Flag()
                    group.addTask {
                        // Its first load may still happen during an election.
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

/// A temporary fault of some nodes.
private struct Fault: Sendable {
    enum Kind: CaseIterable { case killed, stopped, parted }

    let kind: Kind
    let nodes: [Int]
    let duration: Duration

    /// Affects one to all of the nodes, for too short or long enough a time for an election.
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
