import AccessTokens
import BenchmarkSubjects

extension Suite {
    /// Some waiters are cancelled and the others answered, compared with all answered.
    static func cancelling(_ effort: Effort) async throws -> [Table] {
        var table = Table(id: "cancelling", title: "Waiters of one load, some cancelled: time for each waiter")
        for waiters in [1_000, 10_000, 100_000] where !(effort.isQuick && waiters > 10_000) {
            let subjects = [
                leaving(everyOther: nil, "none cancelled"), leaving(everyOther: 2, "half of them cancelled"),
                leaving(everyOther: 1, "all cancelled"),
            ]
            let rounds = try await Rounds(
                of: subjects, count: waiters, rounds: min(max(100_000 / waiters, 3), effort.rounds), batch: effort.batch)
            var cells = [Table.Cell(column: subjects[0].name, value: rounds.sample(0), unit: .nanoseconds)]
            for index in 1..<subjects.count {
                cells.append(.init(column: subjects[index].name, value: rounds.sample(index), unit: .nanoseconds))
                cells.append(.init(column: "÷ none", value: rounds.ratio(of: index, to: 0), unit: .ratio))
            }
            cells = cells.enumerated().map { index, cell in
                cell.column == "÷ none"
                    ? .init(column: index == 2 ? "half ÷ none" : "all ÷ none", value: cell.value, unit: cell.unit) : cell
            }
            table.rows.append(.init(name: "\(waiters)", cells: cells))
        }
        return [table]
    }

    /// From the first call until all have their answers, cancellations included.
    private static func leaving(everyOther step: Int?, _ name: String) -> Subject {
        Subject(name) { waiters in
            // One more than the callers, so that the benchmark itself ends the load.
            let gate = Gate(callers: waiters + 1)
            let service = TokenService(loader: gate)
            return await timed {
                let tasks = (0..<waiters).map { _ in
                    Task {
                        gate.arrive()
                        use(try? await service.retrieveToken())
                    }
                }
                if let step {
                    for (number, task) in tasks.enumerated() where number.isMultiple(of: step) { task.cancel() }
                }
                gate.arrive()
                for task in tasks { await task.value }
            }
        }
    }
}
