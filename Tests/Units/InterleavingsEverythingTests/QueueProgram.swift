import Dispatch
import Synchronization
import Testing

/// A small program with queues: Dispatch can run it, and its orders can be counted without Dispatch.
struct QueueProgram: Sendable, CustomTestStringConvertible {
    indirect enum Act: Sendable {
        case mark(Int)
        case async(Int, [Act], isBarrier: Bool = false)
        case asyncInGroup(Int, [Act])
        case sync(Int, [Act], isBarrier: Bool = false)
        case signal
        case wait
        case waitForGroup
    }

    let name: String
    /// Whether each queue is concurrent.
    var queues = [false]
    /// The actions of each task.
    let tasks: [[Act]]

    var testDescription: String { name }
}

/// One run of a program: its queues, and its marks in order.
final class QueueRun: Sendable {
    private let queues: [DispatchQueue]
    private let group = DispatchGroup()
    private let semaphore = DispatchSemaphore(value: 0)
    private let order = Mutex<[Int]>([])

    init(_ program: QueueProgram) {
        queues = program.queues.enumerated().map { DispatchQueue(label: "Q\($0)", attributes: $1 ? .concurrent : []) }
    }

    var marks: [Int] { order.withLock { $0 } }

    func run(_ acts: [QueueProgram.Act]) {
        for act in acts {
            switch act {
            case .mark(let mark): order.withLock { $0.append(mark) }
            case .async(let queue, let acts, let isBarrier):
                queues[queue].async(flags: isBarrier ? .barrier : []) { self.run(acts) }
            case .asyncInGroup(let queue, let acts): queues[queue].async(group: group) { self.run(acts) }
            case .sync(let queue, let acts, let isBarrier):
                queues[queue].sync(flags: isBarrier ? .barrier : []) { self.run(acts) }
            case .signal: semaphore.signal()
            case .wait: semaphore.wait()
            case .waitForGroup: group.wait()
            }
        }
    }
}

/// Counts a program's orders by trying them all: what may run next follows only from the rules of Dispatch.
struct QueueModel {
    private enum Op {
        case mark(Int), enqueue(Agent), signal, leave
        /// Stops until it may continue.
        case enter(Turn), wait, waitForGroup
        case exit(Turn)
        /// Stops, where threads stop at each call.
        case point
    }

    private struct Turn: Equatable {
        let queue: Int
        let isBarrier: Bool
    }

    /// The rest of a task or a block.
    private struct Agent {
        var ops: [Op]
        /// Where it runs; `nil` for a task.
        var turn: Turn?
        var hasBegun = false
        /// When it entered the queue that it waits for.
        var arrival = 0
    }

    private let queues: [Bool]
    private let stopsEverywhere: Bool
    private var agents: [Agent] = []
    private var running: [Turn] = []
    private var (signals, members, arrivals) = (0, 0, 0)
    private var marks: [Int] = []

    /// - Parameter stopsEverywhere: Whether threads stop at each call, not only where they may have to wait.
    static func orders(of program: QueueProgram, stopsEverywhere: Bool = false) -> (count: Int, marks: Set<[Int]>) {
        var model = QueueModel(queues: program.queues, stopsEverywhere: stopsEverywhere)
        for acts in program.tasks { model.agents.append(Agent(ops: model.ops(acts))) }
        return model.search()
    }

    private init(queues: [Bool], stopsEverywhere: Bool) {
        self.queues = queues
        self.stopsEverywhere = stopsEverywhere
    }

    private func ops(_ acts: [QueueProgram.Act]) -> [Op] {
        let point: [Op] = stopsEverywhere ? [.point] : []
        return acts.flatMap { act -> [Op] in
            switch act {
            case .mark(let mark): return [.mark(mark)]
            case .async(let queue, let acts, let isBarrier):
                return point + [.enqueue(Agent(ops: ops(acts), turn: turn(queue, isBarrier)))]
            case .asyncInGroup(let queue, let acts):
                return point + [.enqueue(Agent(ops: ops(acts) + point + [.leave], turn: turn(queue, false)))]
            case .sync(let queue, let acts, let isBarrier):
                return point + [.enter(turn(queue, isBarrier))] + ops(acts) + [.exit(turn(queue, isBarrier))] + point
            case .signal: return point + [.signal]
            case .wait: return [.wait]
            case .waitForGroup: return [.waitForGroup]
            }
        }
    }

    private func turn(_ queue: Int, _ isBarrier: Bool) -> Turn { Turn(queue: queue, isBarrier: isBarrier || !queues[queue]) }

    private func search() -> (count: Int, marks: Set<[Int]>) {
        let next = agents.indices.filter(mayRun)
        guard !next.isEmpty else { return (1, [marks]) }
        var (count, all) = (0, Set<[Int]>())
        for index in next {
            var model = self
            model.step(index)
            let (more, marks) = model.search()
            count += more
            all.formUnion(marks)
        }
        return (count, all)
    }

    /// The turn for which an agent waits; `nil`: none.
    private func claim(_ agent: Agent) -> Turn? {
        if !agent.hasBegun, let turn = agent.turn { return turn }
        if case .enter(let turn) = agent.ops.first { return agent.hasBegun ? turn : nil }
        return nil
    }

    private func mayRun(_ index: Int) -> Bool {
        let agent = agents[index]
        if let claim = claim(agent) {
            let isBefore = agents.contains { other in
                guard let turn = self.claim(other), turn.queue == claim.queue, other.arrival < agent.arrival else { return false }
                return turn.isBarrier || claim.isBarrier
            }
            return !isBefore && !running.contains { $0.queue == claim.queue && ($0.isBarrier || claim.isBarrier) }
        }
        guard agent.hasBegun else { return true }
        switch agent.ops.first {
        case .wait: return signals > 0
        case .waitForGroup: return members == 0
        default: return true
        }
    }

    private mutating func step(_ index: Int) {
        var agent = agents.remove(at: index)
        if agent.hasBegun {
            pass(agent.ops.removeFirst())
        } else if let turn = agent.turn {
            running.append(turn)
        }
        agent.hasBegun = true
        while let op = agent.ops.first {
            switch op {
            case .enter, .wait, .waitForGroup, .point:
                arrivals += 1
                agent.arrival = arrivals
                agents.append(agent)
                return
            case .mark, .enqueue, .signal, .leave, .exit: pass(agent.ops.removeFirst())
            }
        }
        if let turn = agent.turn { end(turn) }
    }

    private mutating func pass(_ op: Op) {
        switch op {
        case .mark(let mark): marks.append(mark)
        case .enqueue(var agent):
            arrivals += 1
            agent.arrival = arrivals
            if agent.ops.contains(where: { if case .leave = $0 { true } else { false } }) { members += 1 }
            agents.append(agent)
        case .signal: signals += 1
        case .leave: members -= 1
        case .enter(let turn): running.append(turn)
        case .exit(let turn): end(turn)
        case .wait: signals -= 1
        case .waitForGroup, .point: break
        }
    }

    private mutating func end(_ turn: Turn) {
        if let index = running.firstIndex(of: turn) { running.remove(at: index) }
    }
}
