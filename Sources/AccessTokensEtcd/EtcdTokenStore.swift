public import AccessTokens
public import AccessTokensHTTP
public import AccessTokensSharing
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A shared grant under one key of etcd, for services on several hosts.
///
/// ```swift
/// let store = try EtcdTokenStore(
///     key: "/tokens/reports", endpoints: [url], user: (name: "reports", password: password))
/// let tokens = TokenService(sharedStore: store, loader: loader)
/// ```
///
/// A swap is one transaction that compares the key's modification revision, and a load is one linearizable read; etcd answers
/// both only with a majority of its members. There is no lease, no lock and no watch: leases and locks expire by etcd's clocks.
///
/// **Concurrent calls.** Operations run independently of each other, in any number, from any number of stores with the same key.
/// Each is one request, or two or three when an authentication token is fetched.
///
/// **Several endpoints.** The store begins with the endpoint that answered last. It asks the next one only if nothing can be
/// written twice: after each failure of a load, and after a swap that was not sent. A swap whose outcome is unknown throws.
///
/// **Time limits.** By default a request ends after 3 s. Without a majority etcd itself answers after 7 s, later than the 5 s
/// that a service gives an operation; 3 s leave room for a second endpoint.
///
/// It needs etcd 3.4 or newer, whose HTTP gateway is at `/v3/`. Every error is an ``EtcdError`` or a `CancellationError`.
public final class EtcdTokenStore: SharedTokenStore {
    /// The key of the record.
    package let key: String

    private let name: Data
    private let timeLimit: Duration
    private let clock: any Clock<Duration>
    private let generator: Lock<SplitMix64>
    private let client: EtcdClient

    /// Creates a store after checking everything that can be checked without etcd; sends nothing yet.
    ///
    /// - Parameters:
    ///   - key: The record's key, used by nothing else.
    ///   - endpoints: The URLs of the cluster's members, such as `https://etcd-1.example:2379`, all of one cluster: at least one,
    ///     `https`, or `http` to a loopback address.
    ///   - user: The store's user in etcd, whose role may read and write this one key and nothing else; `nil` if etcd's
    ///     authentication is not enabled. Only the request that fetches an authentication token contains the password: no
    ///     description, dump, mirror or error of the store shows it.
    ///   - timeLimit: How long one request may take, 3 s by default; clamped to 0.1 s through one hour.
    ///   - allowsPlainHTTP: Whether `http` is accepted for other hosts, too. Anyone who can read that network can then read the
    ///     password, and the record unless it is sealed.
    ///   - transport: Carries the requests. `nil`: `URLSession` on Apple platforms, where the system judges certificates and no
    ///     client certificate is sent; on Linux a socket without TLS, which uses no proxy and refuses `https`. For TLS there,
    ///     take a transport of the program's own over an HTTP client of your own, or reach etcd through a proxy on this machine that speaks TLS to it. A
    ///     program that is built without the package's trait `URLSession` must bring one in any case.
    ///   - environment: The clock and the seed for the pauses of ``changedRecord(from:atMost:)``.
    /// - Throws: ``EtcdError``, which says what to correct.
    public init(
        key: String,
        endpoints: [URL],
        user: (name: String, password: String)? = nil,
        timeLimit: Duration = .seconds(3),
        allowsPlainHTTP: Bool = false,
        transport: (any TokenTransport)? = nil,
        environment: TokenService.Environment = TokenService.Environment()
    ) throws {
        func require(_ condition: Bool, _ problem: String) throws(EtcdError) {
            guard condition else { throw EtcdError(.invalidConfiguration, problem) }
        }
        try require(!key.isEmpty, "the key is empty")
        try require(!endpoints.isEmpty, "it has no endpoints")
        for url in endpoints {
            try require(url.user == nil && url.password == nil, "an endpoint must not contain a user or a password")
            guard let origin = Origin(url) else {
                throw EtcdError(.invalidConfiguration, "an endpoint must be an http or https URL with a host")
            }
            try require(url.query == nil && url.fragment == nil, "the endpoint \(origin) must not have a query or a fragment")
            try require(
                origin.isPrivate || allowsPlainHTTP,
                "the endpoint \(origin) must begin with https, or with http for a loopback address")
        }
        if let user { try require(!user.name.isEmpty && !user.password.isEmpty, "the user's name or password is empty") }
        self.key = key
        name = Data(key.utf8)
        self.timeLimit = min(max(timeLimit, .milliseconds(100)), .seconds(3600))
        clock = environment.clock
        generator = Lock(SplitMix64(seed: environment.seed))
        let user = user.map { EtcdUser(name: $0.name, password: $0.password) }
        client = EtcdClient(endpoints: endpoints, user: user, transport: transport ?? SystemEtcdTransport())
    }

    /// Returns the current record, with one linearizable read.
    @concurrent public func load() async throws -> SharedRecord? {
        try await client.perform(.load(name), within: timeLimit)
    }

    /// Replaces the record in one transaction if its revision is still the given one; a conflict returns the current record.
    ///
    /// - Throws: ``EtcdError``; its ``EtcdError/isOutcomeUnknown`` says whether the record may have been replaced.
    @concurrent public func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        guard let expected = revision.map({ Int64($0.text) }) ?? 0, expected > 0 || revision == nil else {
            throw EtcdError(.invalidConfiguration, "the revision is not one of etcd's, a positive number")
        }
        return try await client.perform(.swap(bytes, ifAt: expected, of: name), within: timeLimit)
    }

    /// Reads the record after pauses that grow to a second, until it has another revision or the limit has passed.
    ///
    /// After a transient failure it reads again later; any other failure ends the wait. Cancellation ends it at once.
    ///
    /// - Returns: The record that ended the wait; `nil` if the limit has passed, or the record is gone.
    @concurrent public func changedRecord(
        from revision: SharedRecord.Revision?, atMost limit: Duration
    ) async throws -> SharedRecord? {
        try await poll(from: revision, atMost: limit, on: clock)
    }

    private func poll(
        from revision: SharedRecord.Revision?, atMost limit: Duration, on clock: some Clock<Duration>
    ) async throws -> SharedRecord? {
        let start = clock.now
        var pause = Self.firstPause
        while true {
            // Half to all of the pause, so that stores that begin to wait at the same time don't all read at the same time.
            let share = generator.withLock { Double.random(in: 0.5...1, using: &$0) }
            let rest = limit - start.duration(to: clock.now)
            guard rest > .zero else { return nil }
            try await clock.sleep(for: min(pause * share, rest))
            let left = limit - start.duration(to: clock.now)
            guard left > .zero else { return nil }
            do {
                // Ask only one endpoint, so that the limit holds; after a failure the next read asks another one.
                let current = try await client.perform(.load(name), within: min(timeLimit, left), attempts: 1)
                if current?.revision != revision { return current }
            } catch let error as EtcdError where error.isOfOneEndpoint {
                // Read again after the next pause: a leader is elected within seconds.
            }
            pause = min(pause * 2, Self.longestPause)
        }
    }

    /// A load takes a few milliseconds; the awaited mark remains for as long as another service's request takes.
    private static let firstPause = Duration.milliseconds(50)
    private static let longestPause = Duration.seconds(1)
}

extension EtcdTokenStore: Redacted {
    package var text: String { "EtcdTokenStore(key \(String(reflecting: key)))" }
}
