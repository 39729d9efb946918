import AccessTokens
import AccessTokensKeys
import BenchmarkSubjects
import Synchronization

extension Suite {
    /// The cost of a service that is one of many: a hit through its key, its memory, and several threads at once.
    static func keys(_ effort: Effort) async throws -> [Table] {
        [try await sizes(effort), try await keyedHits(effort), try await contendedKeys(effort)]
    }

    /// A hit through each of so many keys in turn, beside the same services without keys, and their memory.
    private static func sizes(_ effort: Effort) async throws -> Table {
        var table = Table(id: "keys-size", title: "TokenServices: memory, and a hit through each key in turn")
        // Not counted: what the first use makes once for all.
        _ = await WarmKeys(1)
        for count in [1, 1_000, 100_000] + (effort.isQuick ? [] : [1_000_000]) {
            let (warm, memory) = await measured(count)
            let subjects = [
                Subject("keys") { calls in
                    var key = 0
                    return try await timed {
                        for _ in 0..<calls {
                            use(try await warm.services[key].retrieveToken())
                            key = warm.key(after: key)
                        }
                    }
                },
                Subject("array") { [all = warm.all] calls in
                    var key = 0
                    return try await timed {
                        for _ in 0..<calls {
                            use(try await all[key].retrieveToken())
                            key = warm.key(after: key)
                        }
                    }
                },
            ]
            let rounds = try await Rounds(of: subjects, rounds: effort.rounds, batch: effort.batch)
            let cells = [
                Table.Cell(column: "each", value: rounds.sample(0), unit: .nanoseconds),
                Table.Cell(column: "ours ÷ array", value: rounds.ratio(of: 0, to: 1), unit: .ratio),
            ]
            table.rows.append(.init(name: "\(count)", cells: cells + memory))
        }
        return table
    }

    /// So many keys, and what each keeps allocated, beside a service that no table knows.
    ///
    /// Each has a token from a sign-in: a load's time limit would be counted, too, for as long as it is (30 s).
    private static func measured(_ count: Int) async -> (warm: WarmKeys, memory: [Table.Cell]) {
        var services: [TokenService] = []
        let alone = await Allocations.counted { services = await WarmKeys.services(count) }
        use(services.count)
        services = []
        var warm = await WarmKeys(0)
        let keyed = await Allocations.counted { warm = await WarmKeys(count) }
        var cells: [Table.Cell] = []
        for (column, counted) in [("memory of a key", keyed), ("of a service alone", alone)] {
            guard let bytes = counted?.bytes else { continue }
            let each = (Double(bytes) / Double(count)).rounded()
            cells.append(.init(column: column, value: Sample(exactly: each), unit: .bytes))
        }
        return (warm, cells)
    }

    /// A hit through one key again and again, beside a plain hit and the least that a table of services can be.
    private static func keyedHits(_ effort: Effort) async throws -> Table {
        let warm = await WarmKeys(1)
        let service = warm.services[0]
        let dictionary = Services(service)
        let subjects = [
            Subject("services[key]") { calls in
                try await timed { for _ in 0..<calls { use(try await warm.services[0].retrieveToken()) } }
            },
            Subject("the service itself") { calls in
                try await timed { for _ in 0..<calls { use(try await service.retrieveToken()) } }
            },
            Subject("floor: lock, dictionary, hit") { calls in
                try await timed { for _ in 0..<calls { use(try await dictionary[0]?.retrieveToken()) } }
            },
        ]
        let rounds = try await Rounds(of: subjects, rounds: effort.rounds, batch: effort.batch)
        var table = Table(id: "keys-hit", title: "Cached hit through a key, async, 1 task")
        table.compare(subjects.map(\.name), rounds)
        let count = 10_000
        let counted = try await Allocations.counted {
            for _ in 0..<count { use(try await warm.services[0].retrieveToken()) }
        }
        if let counted, let first = table.rows.first {
            let each = (Double(counted.count) / Double(count) * 100).rounded() / 100
            let cell = Table.Cell(column: "allocations", value: Sample(exactly: each), unit: .each)
            table.rows[0] = Table.Row(name: first.name, cells: first.cells + [cell])
        }
        return table
    }

    /// Eight tasks that ask at once, for one key or each for its own.
    private static func contendedKeys(_ effort: Effort) async throws -> Table {
        let tasks = 8
        let warm = await WarmKeys(tasks)
        let all = warm.all
        let subjects = [
            each("one key", tasks) { _ in use(try await warm.services[0].retrieveToken()) },
            each("a key for each task", tasks) { use(try await warm.services[$0].retrieveToken()) },
            each("one service", tasks) { _ in use(try await all[0].retrieveToken()) },
            each("a service for each task", tasks) { use(try await all[$0].retrieveToken()) },
        ]
        let rounds = try await Rounds(of: subjects, rounds: effort.rounds, batch: effort.batch)
        var table = Table(id: "keys-contended", title: "Cached hit through keys, async, \(tasks) tasks at once")
        for (index, subject) in subjects.enumerated() {
            var cells = [Table.Cell(column: "each", value: rounds.sample(index), unit: .nanoseconds)]
            // Each with keys beside the same without.
            if index < 2 {
                cells.append(.init(column: "ours ÷ without keys", value: rounds.ratio(of: index, to: index + 2), unit: .ratio))
            }
            table.rows.append(.init(name: subject.name, cells: cells))
        }
        return table
    }

    /// Divides the count among tasks that run at once and know their numbers.
    private static func each(
        _ name: String, _ tasks: Int, _ call: @escaping @Sendable (_ task: Int) async throws -> Void
    ) -> Subject {
        Subject(name) { count in
            try await timed {
                try await withThrowingDiscardingTaskGroup { group in
                    for task in 0..<tasks {
                        group.addTask { for _ in 0..<(count / tasks) { try await call(task) } }
                    }
                }
            }
        }
    }
}

/// The least that a table of services can be: a dictionary behind a lock, without a bound.
private final class Services: Sendable {
    private let services: Mutex<[Int: TokenService]>

    init(_ service: TokenService) {
        services = Mutex([0: service])
    }

    subscript(key: Int) -> TokenService? { services.withLock { $0[key] } }
}
