import AccessTokens
import AccessTokensDispatch
import Dispatch
import RaceGallery
import AccessTokensTesting
import BenchmarkSubjects

extension Suite {
    /// The memory that one more waiting caller or handler takes.
    static func memory(_ effort: Effort) async throws -> [Table] {
        let handlers = 100_000
        let callers = [
            await Callers(keeping: Nothing.self), await Callers(keeping: SIMD8<UInt64>.self),
            await Callers(keeping: SIMD16<UInt64>.self), await Callers(keeping: SIMD32<UInt64>.self),
            await Callers(keeping: SIMD64<UInt64>.self),
        ].compactMap(\.self)
        let bare = await bytes { stage in
            {
                Task(executorPreference: stage) {
                    await unsafe withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
                }
            }
        }
        guard let nothing = callers.first, let bare else { return [] }
        var waiting = Table(id: "memory-callers", title: "Memory of a waiting async caller")
        add("TokenService", nothing.ours, to: &waiting)
        add("bare suspended task", bare, to: &waiting)
        add("Task.value", nothing.theirs, to: &waiting)
        var frames = Table(id: "memory-frames", title: "Memory of a waiting async caller, by the bytes that it keeps")
        frames.rows = callers.map(\.row)
        var kept = Table(id: "memory-handlers", title: "Memory of a waiting handler")
        let stage = Stage()
        let shim = AccessTokenService(service: TokenService(environment: .driven(by: stage), loader: Gate(callers: .max)))
        let queue = DispatchQueue(label: "stage 3")
        let stage3 = ThreadSafeTokenService(loader: Gate(callers: .max), queue: queue)
        let array = Kept()
        let lines: [(String, (@escaping AccessTokenService.Handler) -> Void, () async -> Void)] = [
            ("AccessTokenService", shim.retrieveToken, { stage.run() }),
            ("bare array of closures", { array.handlers.append($0) }, {}),
            ("stage 3", stage3.retrieveToken, { await called { done in queue.async(execute: done) } }),
        ]
        for (name, retrieve, settle) in lines {
            retrieve { use($0) }
            await settle()
            let counted = await Allocations.counted {
                for number in 0..<handlers { retrieve { use(($0, number)) } }
                await settle()
            }
            guard let counted else { return [] }
            add(name, Double(counted.bytes) / Double(handlers), to: &kept)
        }
        return [waiting, frames, kept]
    }

    /// The bytes that a caller of each design takes, if it keeps a value across the call.
    private struct Callers {
        let kept: Int
        let ours: Double
        let theirs: Double

        init?<Kept: Keepable>(keeping kept: Kept.Type) async {
            // All of it takes turns with its callers: beside them it would be chance how many of these find the load begun.
            let ours = await Suite.bytes { stage in
                let service = TokenService(environment: .driven(by: stage), loader: Gate(callers: .max))
                return { Task(executorPreference: stage) { try await keeping(kept) { try await service.retrieveToken() } } }
            }
            let theirs = await Suite.bytes { stage in
                let service = AwaitedTaskService(loader: Gate(callers: .max))
                return { Task(executorPreference: stage) { try await keeping(kept) { try await service.retrieveToken() } } }
            }
            guard let ours, let theirs else { return nil }
            (self.kept, self.ours, self.theirs) = (MemoryLayout<Kept>.size, ours, theirs)
        }

        var row: Table.Row {
            Table.Row(
                name: "\(kept) B",
                cells: [
                    Table.Cell(column: "TokenService", value: Sample(exactly: ours.rounded()), unit: .bytes),
                    Table.Cell(column: "Task.value", value: Sample(exactly: theirs.rounded()), unit: .bytes),
                    Table.Cell(column: "ours ÷ it", value: Sample(exactly: ours / theirs), unit: .ratio),
                ])
        }
    }

    /// The memory that each of many waiting tasks takes after the first, which starts the load.
    fileprivate static func bytes(_ makeStart: (Stage) -> () -> Void) async -> Double? {
        let callers = 10_000, stage = Stage(), start = makeStart(stage)
        start()
        stage.run()
        let counted = await Allocations.counted {
            for _ in 0..<callers {
                start()
                stage.run()
            }
        }
        return counted.map { Double($0.bytes) / Double(callers) }
    }

    private static func add(_ name: String, _ each: Double, to table: inout Table) {
        var cells = [Table.Cell(column: "each", value: Sample(exactly: each.rounded()), unit: .bytes)]
        if let ours = table.rows.first?.cells.first?.value.median {
            cells.append(.init(column: "ours ÷ it", value: Sample(exactly: ours / each), unit: .ratio))
        }
        table.rows.append(.init(name: name, cells: cells))
    }
}

/// Keeps handlers without calling them.
private final class Kept {
    var handlers: [AccessTokenService.Handler] = []
}
