import Dispatch
import TokenServiceConcurrency

/// Calls and work from threads that the engine doesn't drive.
extension Engine {
    /// Whether the engine drives the calling thread.
    var isAtHome: Bool {
        let thread = ThreadIdentity.current
        return thread == home || threads.map { $0.isRunning(on: thread) } ?? false
    }

    /// The origin of work.
    enum Origin: Sendable {
        case home
        /// A controlled thread that slept while others continued.
        case sleeper
        case outside
    }

    var origin: Origin {
        guard isAtHome else { return .outside }
        return threads != nil && ControlledThread.current?.isLate == true ? .sleeper : .home
    }

    /// Reports an escape if an outside thread calls the simulation; after the execution such calls are allowed.
    ///
    /// - Parameter call: The called function, for the report.
    func expectHome(_ call: StaticString) {
        guard !isAtHome else { return }
        let caller = Caller.current
        let isNoted = state.withLock { state in
            guard state.phase != .over, state.escape == nil else { return false }
            state.noteEscape("\(caller) used \(call) on a thread that the explorer does not drive")
            return true
        }
        if isNoted { outside.signal() }
    }

    /// Waits in real time for work or a call from outside, to tell an escape from a failure of the code.
    ///
    /// Waits for as long as five sleeps of an outside task take: half a second, longer on a loaded machine.
    func isReachedFromOutside() -> Bool {
        // This wait must not count as a step that never returns.
        let moment = watchdog?.watch(nil)
        defer { _ = watchdog?.watch(moment) }
        let patience = DispatchSemaphore(value: 0)
        Task.detached {
            for _ in 1...5 { try? await ContinuousClock().sleep(for: .milliseconds(100)) }
            patience.signal()
        }
        // Under a sanitizer, other tests may keep the pool busy for minutes.
        let end = DispatchTime.now() + .seconds(600)
        return ExplorationLimiter.waiting {
            while patience.wait(timeout: .now()) == .timedOut, .now() < end {
                if outside.wait(timeout: .now() + .milliseconds(20)) == .success { return true }
            }
            return outside.wait(timeout: .now()) == .success
        }
    }
}

extension Engine.State {
    /// Notes the first escape, and the tasks that have not ended at that moment.
    mutating func noteEscape(_ detail: String, in callSite: (@Sendable () -> String?)? = nil) {
        if escape == nil { escape = (detail, tasks.waiting, callSite) }
    }

    /// Marks the unfinished tasks that wait for something unknown to the engine as doubted, since it will report that nothing can
    /// run.
    ///
    /// If something outside the simulation wakes one of them, that report is wrong, and other tasks and time have moved on too
    /// early.
    mutating func doubtWaitingTasks() {
        let timers = clock.timers
        let knows = timers.count + idleWaiters.count <= 64
        for index in tasks.spawned.indices where !tasks.spawned[index].hasEnded && !tasks.spawned[index].isDoubted {
            // It waits for its process to be thawed.
            if isFrozen(tasks.spawned[index].process) { continue }
            let task = tasks.spawned[index].identity
            // Skip the search if there are very many waits: a needless doubt costs time only if an execution fails.
            let waits = timers.contains { $0.suspension.task == task } || idleWaiters.contains { $0.suspension.task == task }
            tasks.doubt(index, !(knows && waits))
        }
    }

    /// Whether the execution's failure may have an outside cause, so that waiting for it is useful.
    var mayHaveEscaped: Bool {
        guard escape == nil, tasks.unfinished > 0 else { return false }
        // A blocked thread has no outside cause.
        if let problem = failure as? ExplorationProblem, problem.code == .blockedThread { return false }
        return !tasks.doubted.isEmpty
    }
}

/// Identifies a task of the runtime.
struct TaskIdentity: Sendable, Equatable {
    private let hash: Int

    /// The current task; `nil` outside a task.
    static var current: TaskIdentity? {
        unsafe withUnsafeCurrentTask { task in unsafe task.map { unsafe TaskIdentity(hash: $0.hashValue) } }
    }
}

/// The outside caller of a simulation, as a report names it.
private enum Caller {
    static var current: String {
        guard TaskIdentity.current != nil else { return "a DispatchQueue's block or a thread" }
        if let name = Simulation.taskName { return "a task that '\(name)' began" }
        return Simulation.current == nil ? "a detached task" : "a task that the scenario began"
    }
}
