/// Runs programs in every order, step by step, without any of the explorer's code, as an oracle for the explorer.
///
/// A task's step ends where it hops, yields, waits or ends. Any task that isn't waiting may have the next step, but the main
/// actor, like its queue, is first in, first out.
struct ProgramInterpreter {
    private enum Part {
        case note(Int)
        /// The task can continue at once, in another step.
        case stop
        /// The task can continue, in another step, after those that reached the main actor before it.
        case stopForMain
        case start([Part])
        /// Waits for this many of the tasks that were started last.
        case join(Int)
    }

    private struct Running {
        let code: [Part]
        var next = 0
        var children: [Int] = []
        var waitsFor: [Int] = []
        var hasEnded = false

        var canRun: Bool { !hasEnded && waitsFor.isEmpty }
    }

    private var tasks: [Running]
    private var order: [Int] = []
    private var mainQueue: [Int] = []

    init(_ program: [Deed]) {
        tasks = [Running(code: Self.parts(of: program))]
    }

    private static func parts(of deeds: [Deed]) -> [Part] { deeds.flatMap(parts) }

    private static func parts(of deed: Deed) -> [Part] {
        switch deed {
        case .yield(let id): [.stop, .note(id)]
        case .call(let id, _, let yields):
            // To yield, a task leaves the actor and returns to it.
            [.stop, .note(id)] + Array(repeating: [.stop, .stop, .stop, .note(-id)], count: yields).joined() + [.stop]
        case .main(let id): [.stopForMain, .note(id), .stop]
        case .nested(let id, _, _): [.stop, .stop, .note(id), .stop, .note(-id), .stop]
        case .asyncLet(let child, let meanwhile), .task(let child, let meanwhile):
            [.start(parts(of: child))] + parts(of: meanwhile) + [.join(1)]
        case .group(let children): children.map { .start(parts(of: $0)) } + [.join(children.count)]
        }
    }

    /// Calls `found` with the order of the operations under each schedule, until it returns `false`.
    func forEachSchedule(_ found: ([Int]) -> Bool) -> Bool {
        let runnable = tasks.indices.filter { tasks[$0].canRun && (!mainQueue.contains($0) || mainQueue[0] == $0) }
        guard !runnable.isEmpty else { return found(order) }
        return runnable.allSatisfy { task in
            var copy = self
            copy.step(task)
            return copy.forEachSchedule(found)
        }
    }

    private mutating func step(_ task: Int) {
        mainQueue.removeAll { $0 == task }
        while tasks[task].next < tasks[task].code.count {
            switch tasks[task].code[tasks[task].next] {
            case .note(let id): order.append(id)
            case .stop:
                tasks[task].next += 1
                return
            case .stopForMain:
                mainQueue.append(task)
                tasks[task].next += 1
                return
            case .start(let code):
                tasks[task].children.append(tasks.count)
                tasks.append(Running(code: code))
            case .join(let count):
                let awaited = Array(tasks[task].children.suffix(count))
                guard awaited.allSatisfy({ tasks[$0].hasEnded }) else {
                    // Woken by the next task that ends, whether or not it is the last.
                    tasks[task].waitsFor = awaited.filter { !tasks[$0].hasEnded }
                    return
                }
                tasks[task].children.removeLast(count)
            }
            tasks[task].next += 1
        }
        tasks[task].hasEnded = true
        for other in tasks.indices where tasks[other].waitsFor.contains(task) { tasks[other].waitsFor = [] }
    }
}
