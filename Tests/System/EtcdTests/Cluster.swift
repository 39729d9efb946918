import AccessTokensHTTP
import AccessTokens
import AccessTokensEtcd
import Foundation
import Testing

/// The etcd that `start-etcd` started, whose nodes tests can kill and stop.
struct Cluster: Sendable {
    let endpoints: [URL]
    let user: (name: String, password: String)?
    private let directory: String
    private let script: String

    /// The cluster that the environment names; `nil`: none.
    static let inEnvironment = Cluster(ProcessInfo.processInfo.environment)
    static let isThere = inEnvironment != nil
    static let hasAuthentication = inEnvironment?.user != nil
    static let hasThreeNodes = inEnvironment?.endpoints.count == 3
    /// Whether each node has its own network.
    static let hasHosts = ProcessInfo.processInfo.environment["ETCD_HOSTS"] != nil

    private init?(_ environment: [String: String]) {
        guard let endpoints = environment["ETCD_ENDPOINTS"], let directory = environment["ETCD_DIR"],
            let script = environment["ETCD_SCRIPT"]
        else { return nil }
        self.endpoints = endpoints.split(separator: ",").compactMap { URL(string: String($0)) }
        self.directory = directory
        self.script = script
        user = environment["ETCD_USER"].map { (name: $0, password: environment["ETCD_PASSWORD"] ?? "") }
    }

    /// Returns stores of one key, each of which uses another node first.
    func stores(_ count: Int, key: String = "/tokens/\(UUID())", timeLimit: Duration = .seconds(3)) throws -> [EtcdTokenStore] {
        try (0..<count).map { number in
            let first = number % endpoints.count
            return try EtcdTokenStore(
                key: key, endpoints: Array(endpoints[first...] + endpoints[..<first]), user: user, timeLimit: timeLimit,
                allowsPlainHTTP: Self.hasHosts)
        }
    }

    /// Sends a request past the store, and returns the members of the answer.
    func ask(_ path: String, _ body: String, at node: Int = 0, token: String? = nil) async throws -> [String: Any] {
        let request = TransportRequest(
            url: endpoints[node].appending(path: path), headers: token.map { ["Authorization": $0] } ?? [:],
            body: Data(body.utf8),
            timeLimit: .seconds(3))
        let answer = try await SystemEtcdTransport().send(request)
        return try #require(try JSONSerialization.jsonObject(with: answer.body) as? [String: Any])
    }

    /// Returns the node that reports itself as the leader, without asking the silent one.
    func leader(except silent: Int? = nil) async throws -> Int {
        for node in endpoints.indices where node != silent {
            let status = try await ask("v3/maintenance/status", "{}", at: node)
            if let leader = status["leader"] as? String,
                (status["header"] as? [String: Any])?["member_id"] as? String == leader
            {
                return node
            }
        }
        throw NoLeader()
    }

    struct NoLeader: Error {}

    /// Sends a signal to a node's process.
    func signal(_ node: Int, _ signal: Int32) throws {
        let text = try String(contentsOfFile: "\(directory)/\(node).pid", encoding: .utf8)
        let process = try #require(pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines)))
        try #require(kill(process, signal) == 0)
    }

    /// Runs `body`, which may stop nodes, and then restarts all nodes with their data, even after an error.
    func restoring(_ body: () async throws -> Void) async throws {
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        // In its own task: a test that ran out of time is cancelled, but the next one still needs the nodes.
        try await Task {
            for node in endpoints.indices {
                if Self.hasHosts { try await script("rejoin", node) }
                try await script("restart", node)
            }
            for store in try stores(endpoints.count) { _ = try await eventually { try await store.load() } }
        }.value
        try outcome.get()
    }

    /// Runs a command of `start-etcd` for a node: `restart`, `part` or `rejoin`.
    func script(_ command: String, _ node: Int) async throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: script)
        process.arguments = [command, directory, "\(node)"]
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do {
                try process.run()
            } catch {
                process.terminationHandler = nil
                continuation.resume(throwing: error)
            }
        }
        try #require(status == 0)
    }
}

/// Repeats an operation that fails while a leader is being elected, for up to 20 s.
func eventually<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
    let start = ContinuousClock.now
    while true {
        do { return try await body() } catch {
            guard ContinuousClock.now - start < .seconds(20) else { throw error }
            try await Task.sleep(for: .milliseconds(50))
        }
    }
}
