/// Stopping a replay before a step, to show the state at that point.
extension Engine.State {
    /// Ends the execution with a picture of its state; if a debugger is attached, breaks into it once instead.
    mutating func stopHere() -> Engine.Next {
        stop = nil
        let problem = standstill
        guard Debugger.isAttached else {
            failure = problem
            return .stop
        }
        return .breakpoint(problem.text)
    }

    /// The whole schedule of a stopped replay; `nil`: the replay wasn't stopped.
    var stoppedReplay: [Int]? {
        guard case .replay(let replay) = choices.chooser, (failure as? ExplorationProblem)?.code == .stopped else { return nil }
        return replay.choices
    }

    /// Describes the next task, and what each of the others waits for and since which step.
    private var standstill: ExplorationProblem {
        let next: Int = if case .replay(let replay) = choices.chooser { replay.upcoming(among: candidates.count) } else { 0 }
        let index = candidates[next]
        let states = working(next: index) + waiting(besides: Set(lanes.ready.map { name(of: $0.task) }))
        let first = index == Self.timeIndex ? ["    next, time moves on"] : []
        let lines = first + states.map(Self.line)
        let tasks = index == Self.timeIndex ? [] : [name(of: candidateTasks[next])]
        let text = "Stopped before step \(steps + 1), \(clock.now) after the start:\n"
        return ExplorationProblem(.stopped, tasks: tasks, detail: text + lines.joined(separator: "\n"))
    }

    private typealias TaskState = (name: String, state: String, since: Int?, function: String?)

    private static func line(_ state: TaskState) -> String {
        let since = state.since.map { ", since step \($0)" } ?? ""
        return "    '\(state.name)' \(state.state)\(since)\(state.function.map { ", in \($0)" } ?? "")"
    }

    /// The function in which a task continues; `nil`: unknown.
    private func function(of job: Job?) -> String? {
        job?.task.flatMap { task in session?.whereabouts(of: task) }
    }

    /// The functions in which the spawned tasks wait that have not ended, by the tasks' names; empty where no report is made.
    ///
    /// Of twenty at most: finding a line takes a tenth of a second.
    var whereabouts: [String: String] {
        guard recorder != nil else { return [:] }
        var places: [String: String] = [:]
        for task in tasks.spawned.filter({ !$0.hasEnded }).prefix(20) {
            let stopped = lanes.ready.first { $0.wait != nil && name(of: $0.task) == task.name }
            let callSite = stopped.flatMap { callSites[$0.task] }
            places[task.name] = callSite.map { $0() } ?? task.job.flatMap { session?.whereabouts(of: $0) }
        }
        return places
    }

    /// Tasks and queues with work that is ready, or that stopped inside a step.
    private func working(next: Int) -> [TaskState] {
        lanes.ready.indices.map { index in
            let entry = lanes.ready[index]
            let place = lanes[entry.lane].name == "pool" ? "" : " on '\(lanes[entry.lane].name)'"
            let state = index == next ? "runs next\(place)" : state(of: entry, canRun: candidates.contains(index), place)
            let job: Job? = if case .job(let job) = entry.work { job } else { nil }
            return (name(of: entry.task), state, entry.since, function(of: job))
        }
    }

    private func state(of entry: Engine.Entry, canRun: Bool, _ place: String) -> String {
        if isFrozen(entry.process) { return "is frozen" }
        if canRun { return "can run\(place)" }
        return entry.wait.map { "waits for \(name(of: $0))" } ?? "waits for its turn\(place)"
    }

    /// Tasks that sleep, settle, or wait for something unknown to the engine.
    private func waiting(besides names: Set<String>) -> [TaskState] {
        let sleeping = clock.timers.map { timer in
            (name(of: timer.suspension, timer.sleeper), "sleeps until \(timer.deadline)", function(of: timer.suspension.job))
        }
        let settling = idleWaiters.map { (name(of: $0.suspension), "waits until nothing else can run", String?.none) }
        let known = sleeping + settling
        let others = tasks.waiting.filter { name in !names.contains(name) && !known.contains { $0.0 == name } }
            .map { ($0, "waits for another task or for something outside", String?.none) }
        return (known + others).map { ($0.0, $0.1, lastStep(of: $0.0), $0.2) }
    }

    func name(of suspension: Suspension, _ sleeper: UInt32 = 0) -> String {
        if let task = tasks.number(of: sleeper), sleeper != 0 { return name(of: task) }
        return tasks.spawned.first { $0.identity != nil && $0.identity == suspension.task }?.name ?? "a timer"
    }

    private func lastStep(of task: String) -> Int? {
        recorder?.trace.steps.last { step in step.task == task || step.events.contains { $0.task == task } }?.number
    }
}
