import AccessTokens
import AccessTokensDispatch
import Dispatch
import RaceGallery
import AccessTokensTesting
import BenchmarkSubjects

extension Suite {
    /// The memory that one more waiting caller or handler takes.
    static func memory(_ effort: Effort) async throws -> [Table] {
        let callers = 10_000, handlers = 100_000
        var waiting = Table(id: "memory-callers", title: "Memory of a waiting async caller")
        // The task calls directly: frames of ours between would be counted with those of what is measured.
        let tasks: [(String, (Stage) -> () -> Void)] = [
            (
                "TokenService",
                { stage in
                    // All of it takes turns with its callers: beside them it would be chance how many of these find the load begun.
                    let service = TokenService(environment: .driven(by: stage), loader: Gate(callers: .max))
                    return { Task(executorPreference: stage) { use(try await service.retrieveToken()) } }
                }
            ),
            (
                "bare suspended task",
                { stage in
                    {
                        Task(executorPreference: stage) {
                            await unsafe withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
                        }
                    }
                }
            ),
            (
                "Task.value",
                { stage in
                    let service = AwaitedTaskService(loader: Gate(callers: .max))
                    return { Task(executorPreference: stage) { use(try await service.retrieveToken()) } }
                }
            ),
        ]
        for (name, makeStart) in tasks {
            let stage = Stage()
            let start = makeStart(stage)
            // The first one starts the load.
            start()
            stage.run()
            let counted = await Allocations.counted {
                for _ in 0..<callers {
                    start()
                    stage.run()
                }
            }
            guard let counted else { return [] }
            add(name, counted.bytes, for: callers, to: &waiting)
        }
        var frames = Table(id: "memory-frames", title: "Memory of a waiting async caller, by the bytes that it keeps")
        let rows = [
            await row(keeping: Nothing.self, callers), await row(keeping: SIMD8<UInt64>.self, callers),
            await row(keeping: SIMD16<UInt64>.self, callers), await row(keeping: SIMD32<UInt64>.self, callers),
            await row(keeping: SIMD64<UInt64>.self, callers),
        ]
        frames.rows = rows.compactMap(\.self)
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
            add(name, counted.bytes, for: handlers, to: &kept)
        }
        return [waiting, frames, kept]
    }

    /// The memory of a caller that keeps a value across the call.
    private static func row<Kept: Keepable>(keeping kept: Kept.Type, _ callers: Int) async -> Table.Row? {
        let stage = Stage()
        let service = TokenService(environment: .driven(by: stage), loader: Gate(callers: .max))
        let ours = await bytes(callers, on: stage) {
            Task(executorPreference: stage) {
                var kept = Kept()
                touch(&kept)
                use(try await service.retrieveToken())
                touch(&kept)
            }
        }
        let shared = AwaitedTaskService(loader: Gate(callers: .max))
        let theirs = await bytes(callers, on: stage) {
            Task(executorPreference: stage) {
                var kept = Kept()
                touch(&kept)
                use(try await shared.retrieveToken())
                touch(&kept)
            }
        }
        guard let ours, let theirs else { return nil }
        return Table.Row(
            name: "\(MemoryLayout<Kept>.size) B",
            cells: [
                Table.Cell(column: "TokenService", value: Sample(exactly: ours.rounded()), unit: .bytes),
                Table.Cell(column: "Task.value", value: Sample(exactly: theirs.rounded()), unit: .bytes),
                Table.Cell(column: "ours ÷ it", value: Sample(exactly: ours / theirs), unit: .ratio),
            ])
    }

    /// The memory that each of so many waiting tasks takes after the first, which starts the load.
    private static func bytes(_ callers: Int, on stage: Stage, _ start: () -> Void) async -> Double? {
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

    private static func add(_ name: String, _ bytes: Int, for count: Int, to table: inout Table) {
        let each = Double(bytes) / Double(count)
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
