import AccessTokens
import BenchmarkSubjects
import RaceGallery
import Synchronization

extension Suite {
    /// One load that many callers share, from the first call to the last answer.
    static func misses(_ effort: Effort) async throws -> [Table] {
        try await [
            miss(
                "miss", "One miss, callers in tasks of their own", effort,
                [missing("TokenService", unstructured), waiting(unstructured), awaitedTask(unstructured), handlers]),
            miss(
                "miss-group", "One miss, callers in a task group", effort,
                [missing("TokenService", grouped), waiting(grouped), awaitedTask(grouped), handlers]),
        ]
    }

    typealias Crowd = @Sendable (_ callers: Int, _ call: @escaping Call) async throws -> Void

    private static func miss(
        _ id: String, _ title: String, _ effort: Effort, _ subjects: [Subject]
    ) async throws -> Table {
        var table = Table(
            id: id, title: title,
            note: "Task.value: beyond 10,000 callers it takes minutes; its cost for each grows with their number.")
        for callers in [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000] where !(effort.isQuick && callers > 10_000) {
            // The fewer callers, the more rounds, until they take about as long.
            let rounds = min(max(100_000 / callers, 7), effort.rounds)
            let those = subjects.filter { callers <= 10_000 || $0.name != "Task.value" }
            let measured = try await Rounds(of: those, count: callers, rounds: rounds, batch: effort.batch)
            var cells: [Table.Cell] = []
            for (index, subject) in those.enumerated() {
                cells.append(.init(column: subject.name, value: measured.sample(index), unit: .nanoseconds))
                guard index > 0 else { continue }
                cells.append(
                    .init(column: "ours ÷ \(subject.name)", value: measured.ratio(of: 0, to: index), unit: .ratio))
            }
            table.rows.append(.init(name: "\(callers)", cells: cells))
        }
        return table
    }

    /// A fresh service, whose callers all come while its first load runs.
    private static func missing(_ name: String, _ crowd: @escaping Crowd) -> Subject {
        Subject(name) { callers in
            let gate = Gate(callers: callers)
            let service = TokenService(loader: gate)
            return try await timed {
                try await crowd(callers) {
                    gate.arrive()
                    use(try await service.retrieveToken())
                }
            }
        }
    }

    /// The least that tasks can do that wait for each other: each leaves a continuation, the last one resumes all.
    private static func waiting(_ crowd: @escaping Crowd) -> Subject {
        Subject("bare tasks") { callers in
            let meeting = Meeting(callers: callers)
            return try await timed { try await crowd(callers) { await meeting.wait() } }
        }
    }

    private static func awaitedTask(_ crowd: @escaping Crowd) -> Subject {
        Subject("Task.value") { callers in
            let gate = Gate(callers: callers)
            let service = AwaitedTaskService(loader: gate)
            return try await timed {
                try await crowd(callers) {
                    gate.arrive()
                    use(try await service.retrieveToken())
                }
            }
        }
    }

    private static var handlers: Subject {
        Subject("stage 3") { callers in
            let gate = Gate(callers: callers)
            let service = ThreadSafeTokenService(loader: gate)
            return await timed {
                for _ in 1..<callers {
                    gate.arrive()
                    service.retrieveToken { use($0) }
                }
                await called { done in
                    service.retrieveToken { _ in done() }
                    gate.arrive()
                }
            }
        }
    }
}

/// Where tasks wait until all have come.
private final class Meeting: Sendable {
    private let waiting: Mutex<[CheckedContinuation<Void, Never>]>
    private let expected: Int

    init(callers: Int) {
        waiting = Mutex([])
        expected = callers
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let all = waiting.withLock { waiting in
                waiting.append(continuation)
                return waiting.count == expected ? waiting : []
            }
            for one in all { one.resume() }
        }
    }
}
