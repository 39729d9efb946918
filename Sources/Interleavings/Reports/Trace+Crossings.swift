/// A call of an asynchronous function, as reconstructed from its task's steps.
private struct Call {
    /// A step in which the function ran, and where it was suspended then; `nil`: it returned.
    struct Run {
        let step: Int
        let address: UInt?
    }

    let name: String
    let task: String
    let depth: Int
    /// Where it is suspended after its last run; `nil`: it returned.
    var address: UInt?
    var runs: [Run] = []

    /// Notes that it ran in a step, until it was suspended or returned.
    mutating func run(in step: Int?, to address: UInt?) {
        self.address = address
        if let step { runs.append(Run(step: step, address: address)) }
    }

    var base: Substring { FunctionName(name).base }
    var type: Substring { FunctionName(name).type }
}

/// The parts of a function's name.
struct FunctionName {
    private let name: String

    init(_ name: String) { self.name = name }

    /// The function itself, or the one that contains a closure.
    var base: Substring {
        var rest = name[...]
        // A function's own name may contain " in ", between backticks.
        while !rest.hasPrefix("`"), let range = rest.firstRange(of: " in "), !rest[..<range.lowerBound].contains("`") {
            rest = rest[range.upperBound...]
        }
        return rest
    }

    /// The type of which it is a member; empty: it is not a member.
    var type: Substring {
        var member = base.prefix { $0 != "(" }
        if member.hasPrefix("static ") { member.removeFirst("static ".count) }
        if member.hasSuffix(".getter") { member.removeLast(".getter".count) }
        return member.lastIndex(of: ".").map { member[..<$0] } ?? ""
    }
}

extension Trace {
    /// Returns the suspensions that another task crossed.
    ///
    /// A task's functions at two of its steps show which ran in the first: those that were called, have returned, or are
    /// suspended at another place since then.
    ///
    /// - Parameter name: Names a function of the program by its address; `nil`: it isn't the program's.
    func crossings(_ name: (UInt) -> String?) -> [Crossing] {
        let calls = calls(name)
        // The outermost function of a spawned task is a closure of the scenario.
        let scenario = Set(calls.filter { $0.depth == 0 && !children.contains($0.task) }.map(\.base))
        var running: [Int: [(call: Call, from: UInt?)]] = [:]
        for call in calls.sorted(by: { $0.depth > $1.depth }) {
            for (run, before) in zip(call.runs, [nil] + call.runs) {
                running[run.step, default: []].append((call, before?.address))
            }
        }
        var (found, kinds): ([Crossing], Set<Crossing.Kind>) = ([], [])
        for call in calls {
            let isScenario = scenario.contains(call.base)
            for (before, after, address) in suspensions(of: call) {
                for step in before + 1..<after where lanes[step] == lanes[before] && steps[step].task != call.task {
                    let others = running[step] ?? []
                    let related = others.filter {
                        $0.call.type == call.type && !call.type.isEmpty && !scenario.contains($0.call.base)
                    }
                    let equal = related.first { $0.call.name == call.name } ?? related.first
                    guard let (other, from) = equal ?? others.first else { continue }
                    if isOnPool(step), equal == nil || isScenario { continue }
                    let kind = Crossing.Kind(
                        suspended: call.task, address: address, task: other.task, function: other.name, from: from)
                    guard kinds.insert(kind).inserted else { continue }
                    found.append(
                        Crossing(
                            kind: kind, function: call.name, steps: (steps[before].number, steps[after].number),
                            actor: isOnPool(step) ? nil : steps[step].place, isOneType: equal != nil,
                            isScenario: isScenario, isCall: scenario.contains(other.base)))
                }
            }
        }
        return found
    }

    private func isOnPool(_ step: Int) -> Bool { steps[step].place == "pool" }

    /// Returns where a function was suspended between two steps in which it ran on its actor, or on the pool if it has no actor.
    private func suspensions(of call: Call) -> [(before: Int, after: Int, address: UInt)] {
        let isOnActor = call.runs.contains { !isOnPool($0.step) }
        let runs = Dictionary(grouping: call.runs.filter { !(isOnActor && isOnPool($0.step)) }) { lanes[$0.step] }
        return runs.values.flatMap { runs in
            zip(runs, runs.dropFirst()).compactMap { before, after in
                before.address.map { (before.step, after.step, $0) }
            }
        }
    }

    private func calls(_ name: (UInt) -> String?) -> [Call] {
        var ended: [Call] = []
        var tasks: [String: (step: Int?, calls: [Call])] = [:]
        for (index, step) in steps.enumerated() where !functions[index].isEmpty {
            let frames = functions[index].reversed().compactMap { address in name(address).map { (address, $0) } }
            // On the program's own executors, a task's functions are unknown until a step shows them.
            var task = tasks[step.task] ?? (step: nil, calls: [])
            ended += Self.take(&task.calls, from: task.step, to: frames, in: step.task)
            tasks[step.task] = (index, task.calls)
        }
        for (name, var task) in tasks { ended += Self.take(&task.calls, from: task.step, to: [], in: name) }
        return ended
    }

    /// Updates a task's calls from one of its steps to the next, where it continues in the given functions, the outermost first.
    ///
    /// - Returns: The calls that returned in the step.
    private static func take(
        _ calls: inout [Call], from step: Int?, to frames: [(address: UInt, name: String)], in task: String
    ) -> [Call] {
        var same = zip(calls, frames).prefix { $0.address == $1.address }.count
        if same < min(calls.count, frames.count), calls[same].name == frames[same].name {
            calls[same].run(in: step, to: frames[same].address)
            same += 1
        }
        var returned = Array(calls[same...])
        for index in returned.indices { returned[index].run(in: step, to: nil) }
        calls.removeSubrange(same...)
        for frame in frames[same...] {
            var call = Call(name: frame.name, task: task, depth: calls.count)
            call.run(in: step, to: frame.address)
            calls.append(call)
        }
        return returned
    }
}
