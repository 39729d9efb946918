import TokenServiceConcurrency

/// Simulated processes: work that can be frozen and thawed.
extension Engine {
    struct Process: Sendable {
        enum Condition: Sendable {
            case running
            /// None of its work is picked until it is thawed.
            case frozen
            /// Frozen for good; nothing waits for its tasks.
            case killed

            /// The words of reports about the process and its tasks.
            var words: (deed: String, fate: String) {
                switch self {
                case .running: ("thaws", "is thawed")
                case .frozen: ("freezes", "is frozen")
                case .killed: ("kills", "is killed")
                }
            }
        }

        let name: String
        var condition = Condition.running
    }

    func addProcess(_ name: String) -> Int {
        expectHome("simulation.process")
        return state.withLock { state in
            // Work that arrives later runs in no process.
            guard state.phase != .over else { return 0 }
            state.processes.append(Process(name: name))
            return state.processes.count - 1
        }
    }

    /// Takes effect with the next step: if a step of the process itself calls this, that step first runs to its end or next stop.
    func set(_ condition: Process.Condition, of process: Int) {
        expectHome("a simulated process")
        ControlledThread.current?.pause()
        let caller = author(Simulation.taskName) ?? ""
        state.withLock { $0.set(condition, of: process, by: caller) }
    }
}

extension Engine.State {
    /// While the execution winds down everything may run.
    func isFrozen(_ process: Int?) -> Bool {
        guard let process, phase == .running else { return false }
        return processes[process].condition != .running
    }

    /// The processes of which nothing is picked.
    var frozen: [Int] { processes.indices.filter { isFrozen($0) } }

    /// Whether time can move: a frozen process's timers don't fire, nor does any while the execution winds down.
    mutating func hasRunningTimer() -> Bool {
        guard phase == .running else { return false }
        return processes.isEmpty ? !clock.timers.isEmpty : clock.timers.contains { !isFrozen($0.suspension.process) }
    }

    fileprivate mutating func set(_ condition: Engine.Process.Condition, of process: Int, by caller: String) {
        guard phase == .running, processes[process].condition != .killed else { return }
        guard processes[process].condition != condition else { return }
        processes[process].condition = condition
        if condition == .running { thaw(process) }
        recorder?.log("\(condition.words.deed) '\(processes[process].name)'", by: caller, kind: .event)
        for task in tasks.spawned.indices where tasks.spawned[task].process == process && !tasks.spawned[task].hasEnded {
            recorder?.log(condition.words.fate, by: tasks.spawned[task].name, kind: condition == .killed ? .end : .event)
            if condition == .killed { tasks.forget(task) }
        }
    }

    /// Makes work runnable that became due while the process was frozen.
    private mutating func thaw(_ process: Int) {
        thawedAt = steps
        resumptions += clock.takeDue(of: process).map { .waited($0.suspension, .due) }
    }

    /// A process of which nothing ever runs.
    mutating func omission() -> Int {
        processes.append(Engine.Process(name: "", condition: .killed))
        return processes.count - 1
    }
}
