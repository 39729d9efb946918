import AccessTokens
import AccessTokensDispatch
import BenchmarkSubjects
import RaceGallery
import Synchronization

extension Suite {
    /// Sixty-four tasks ask without pause while tokens expire and are loaded.
    static func refreshing(_ effort: Effort) async throws -> [Table] {
        let expiries = effort.isQuick ? 3 : 20
        // 0.4 s of life: soft from 0.27 s on, hard at 0.36 s.
        let short = ShortLived(lifetime: .milliseconds(400)), lasting = ShortLived(lifetime: nil)
        var table = Table(
            id: "refresh", title: "Latency of 64 tasks' calls over \(expiries) expiries, loads of 20 ms",
            note: "“waited” counts calls of 10 ms and more; “joined” is the service's own count of calls that joined a load.")

        let service = TokenService(loader: short)
        let joined = Task {
            var callers = 0
            for await event in service.events() where event.name == .loadSucceeded || event.name == .loadFailed {
                callers += event.callers
            }
            return callers
        }
        _ = try await service.retrieveToken()
        let duration = Duration.milliseconds(400) * expiries
        let ours = try await latencies(for: duration) { use(try await service.retrieveToken()) }
        joined.cancel()
        // The first call of all waited for the first token; it is not among those measured.
        table.add("TokenService", ours, joined: await joined.value - 1, loads: short.takeLoads())

        let unexpiring = TokenService(loader: lasting)
        _ = try await unexpiring.retrieveToken()
        table.add(
            "TokenService, no expiry", try await latencies(for: duration) { use(try await unexpiring.retrieveToken()) },
            joined: nil, loads: lasting.takeLoads())

        let stage3 = ThreadSafeTokenService(loader: short)
        let third = try await latencies(for: duration) {
            use(
                try await unsafe withUnsafeThrowingContinuation { waiter in
                    stage3.retrieveToken { unsafe waiter.resume(with: $0) }
                })
        }
        table.add("stage 3", third, joined: nil, loads: short.takeLoads())

        let naive = ReentrantTokenService(loader: short)
        let last = try await latencies(for: duration) { use(try await naive.retrieveToken()) }
        table.add("naive actor", last, joined: nil, loads: short.takeLoads())
        return [table]
    }

    /// Measures each call of tasks that yield after every call.
    private static func latencies(for duration: Duration, _ call: @escaping Call) async throws -> Latencies {
        let end = ContinuousClock.now + duration
        return try await withThrowingTaskGroup { group in
            for _ in 0..<64 {
                group.addTask {
                    var latencies = Latencies()
                    var start = ContinuousClock.now
                    while start < end {
                        try await call()
                        latencies.record(start.duration(to: .now))
                        await Task.yield()
                        start = .now
                    }
                    return latencies
                }
            }
            return try await group.reduce(into: Latencies()) { $0.merge($1) }
        }
    }
}

extension Table {
    fileprivate mutating func add(_ name: String, _ latencies: Latencies, joined: Int?, loads: Int) {
        var cells = [0.5, 0.9, 0.99, 0.999, 0.9999].map { part in
            Cell(column: "p\(part * 100)", value: Sample(exactly: latencies.percentile(part) / 1000), unit: .microseconds)
        }
        cells += [
            Cell(column: "highest", value: Sample(exactly: Double(latencies.highest) / 1000), unit: .microseconds),
            Cell(column: "calls", value: Sample(exactly: Double(latencies.count)), unit: .perRun),
            Cell(column: "loads", value: Sample(exactly: Double(loads)), unit: .each),
            Cell(column: "waited", value: Sample(exactly: Double(latencies.count(from: .milliseconds(10)))), unit: .each),
        ]
        if let joined { cells.append(Cell(column: "joined", value: Sample(exactly: Double(joined)), unit: .each)) }
        rows.append(Row(name: name, cells: cells))
    }
}

/// Loads for 20 ms; its tokens have the given lifetime.
private final class ShortLived: TokenLoader, AccessTokenLoader {
    private let lifetime: Duration?
    private let loads = Atomic(0)

    init(lifetime: Duration?) {
        self.lifetime = lifetime
    }

    var isRepeatable: Bool { true }

    /// Returns the number of loads since the last call.
    func takeLoads() -> Int { loads.exchange(0, ordering: .relaxed) }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        let number = loads.add(1, ordering: .relaxed).newValue
        try await Task.sleep(for: .milliseconds(20))
        return AccessToken("token \(number)", lifetime: lifetime)
    }

    func load(then handler: @escaping Handler) {
        Task { handler(await Result(catching: { try await self.loadToken(replacing: nil) })) }
    }
}

extension Result where Failure == any Error {
    fileprivate init(catching body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
