import AccessTokens
import AccessTokensDispatch
import BenchmarkSubjects
import Dispatch
import RaceGallery

extension Suite {
    /// One task asks for a token that is there.
    static func hits(_ effort: Effort) async throws -> [Table] {
        let warm = try await Warm()
        let subjects = [
            Subject("TokenService") { [service = warm.service] count in
                try await timed { for _ in 0..<count { use(try await service.retrieveToken()) } }
            },
            Subject("cachedToken") { [service = warm.service] count in
                await timed { for _ in 0..<count { use(service.cachedToken) } }
            },
            Subject("floor: lock, copy, clock") { [floor = warm.floor] count in
                await timed { for _ in 0..<count { use(floor.token()) } }
            },
            Subject("naive actor") { [naive = warm.naive] count in
                try await timed { for _ in 0..<count { use(try await naive.retrieveToken()) } }
            },
            Subject("stage 3, pipelined") { [stage3 = warm.stage3] count in await pipelined(count, stage3.retrieveToken) },
            Subject("stage 3, awaited") { [stage3 = warm.stage3] count in
                try await timed {
                    for _ in 0..<count {
                        let token = try await unsafe withUnsafeThrowingContinuation { continuation in
                            stage3.retrieveToken { unsafe continuation.resume(with: $0) }
                        }
                        use(token)
                    }
                }
            },
        ]
        let rounds = try await Rounds(of: subjects, rounds: effort.rounds, batch: effort.batch)
        var table = Table(id: "hit", title: "Cached hit, async, 1 task")
        table.compare(subjects.map(\.name), rounds)
        return [table]
    }

    /// A callback caller asks for a token that is there, many times in a row.
    static func callbackHits(_ effort: Effort) async throws -> [Table] {
        let warm = try await Warm()
        let queue = DispatchQueue(label: "floor")
        let subjects = [
            Subject("AccessTokenService") { [shim = warm.shim] count in await pipelined(count, shim.retrieveToken) },
            Subject("stage 3") { [stage3 = warm.stage3] count in await pipelined(count, stage3.retrieveToken) },
            Subject("floor: queue.async") { count in
                await timed {
                    for _ in 1..<count { queue.async {} }
                    await called { done in queue.async { done() } }
                }
            },
        ]
        let rounds = try await Rounds(of: subjects, rounds: effort.rounds, batch: effort.batch)
        var table = Table(id: "callback-hit", title: "Cached hit, callback, calls in a row")
        table.compare(subjects.map(\.name), rounds)
        return [table]
    }

    /// Many tasks ask at once for a token that is there.
    static func contendedHits(_ effort: Effort) async throws -> [Table] {
        let warm = try await Warm()
        var table = Table(id: "contended-hit", title: "Cached hit, async, by the number of tasks that ask at once")
        for tasks in [2, 8, 64] {
            let subjects = [
                shared("TokenService", tasks) { [service = warm.service] in use(try await service.retrieveToken()) },
                shared("floor: lock, copy, clock", tasks) { [floor = warm.floor] in use(floor.token()) },
                shared("naive actor", tasks) { [naive = warm.naive] in use(try await naive.retrieveToken()) },
                shared("one task", 1) { [service = warm.service] in use(try await service.retrieveToken()) },
            ]
            let rounds = try await Rounds(of: subjects, rounds: effort.rounds, batch: effort.batch)
            table.add(
                "\(tasks)", Table.Cell(column: "ours ÷ floor", value: rounds.ratio(of: 0, to: 1), unit: .ratio),
                Table.Cell(column: "ours ÷ naive actor", value: rounds.ratio(of: 0, to: 2), unit: .ratio),
                Table.Cell(column: "ours ÷ ours with one task", value: rounds.ratio(of: 0, to: 3), unit: .ratio),
                Table.Cell(column: "each", value: rounds.sample(0), unit: .nanoseconds))
        }
        return [table]
    }

    /// Divides the count among tasks that run at once.
    private static func shared(_ name: String, _ tasks: Int, _ call: @escaping Call) -> Subject {
        Subject(name) { count in
            try await timed {
                try await grouped(tasks) { for _ in 0..<(count / tasks) { try await call() } }
            }
        }
    }

    /// Asks so many times without waiting in between.
    private static func pipelined(
        _ count: Int, _ retrieve: (@escaping @Sendable (Result<AccessToken, any Error>) -> Void) -> Void
    ) async -> Duration {
        await timed {
            for _ in 1..<count { retrieve { use($0) } }
            await called { done in retrieve { _ in done() } }
        }
    }
}
