import Synchronization

/// A program as data: calls of actors and of the main actor, yields, `async let`, groups and plain tasks.
indirect enum Deed: Sendable {
    case yield(Int)
    case call(Int, actor: Int, yields: Int)
    case main(Int)
    /// A call of an actor that calls another.
    case nested(Int, outer: Int, inner: Int)
    case asyncLet([Deed], meanwhile: [Deed])
    case group([[Deed]])
    case task([Deed], meanwhile: [Deed])
}

/// Generates programs, each determined by a seed.
struct ProgramGenerator {
    private var state: UInt64
    private var lastID = 0

    init(seed: UInt64) {
        state = seed
    }

    mutating func program() -> [Deed] { deeds(depth: 2, most: 2) }

    private mutating func deeds(depth: Int, most: Int) -> [Deed] { (0..<below(most) + 1).map { _ in deed(depth: depth) } }

    private mutating func deed(depth: Int) -> Deed {
        lastID += 1
        let id = lastID
        return switch below(depth > 0 ? 8 : 4) {
        case 0: .yield(id)
        case 1: .call(id, actor: below(2), yields: below(2))
        case 2: .main(id)
        case 3: .nested(id, outer: 0, inner: 1)
        case 4: .asyncLet(deeds(depth: depth - 1, most: 2), meanwhile: deeds(depth: 0, most: 1))
        case 5: .task(deeds(depth: depth - 1, most: 2), meanwhile: deeds(depth: 0, most: 1))
        default: .group((0...below(2) + 1).map { _ in deeds(depth: depth - 1, most: 1) })
        }
    }

    /// SplitMix64.
    private mutating func below(_ count: Int) -> Int {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return Int((mixed ^ (mixed >> 31)) % UInt64(count))
    }
}

/// Runs a program as an app would, without any use of the explorer.
final class ProgramRun: Sendable {
    private let actors = [Visited(), Visited()]
    private let notes = Mutex<[Int]>([])

    /// The operations in the order in which they happened.
    var order: [Int] { notes.withLock { $0 } }

    func note(_ id: Int) { notes.withLock { $0.append(id) } }

    func run(_ deeds: [Deed]) async {
        for deed in deeds { await run(deed) }
    }

    private func run(_ deed: Deed) async {
        switch deed {
        case .yield(let id):
            await Task.yield()
            note(id)
        case .call(let id, let actor, let yields): await actors[actor].visit(id, yields: yields, self)
        case .main(let id): await visitMain(id)
        case .nested(let id, let outer, let inner): await actors[outer].visit(id, through: actors[inner], self)
        case .asyncLet(let child, let meanwhile):
            async let done: Void = run(child)
            await run(meanwhile)
            await done
        case .group(let children):
            await withTaskGroup(of: Void.self) { group in
                for child in children { group.addTask { await self.run(child) } }
            }
        case .task(let child, let meanwhile):
            let task = Task { await run(child) }
            await run(meanwhile)
            await task.value
        }
    }

    @MainActor private func visitMain(_ id: Int) {
        MainActor.assertIsolated()
        note(id)
    }
}

private actor Visited {
    private var visits = 0

    func visit(_ id: Int, yields: Int, _ run: ProgramRun) async {
        visits += 1
        run.note(id)
        for _ in 0..<yields {
            await Task.yield()
            preconditionIsolated()
            visits += 1
            run.note(-id)
        }
    }

    func visit(_ id: Int, through other: Visited, _ run: ProgramRun) async {
        // Without work before the call, the compiler leaves out the hop to this actor.
        visits += 1
        await other.visit(id, yields: 0, run)
        preconditionIsolated()
        visits += 1
        run.note(-id)
    }
}
