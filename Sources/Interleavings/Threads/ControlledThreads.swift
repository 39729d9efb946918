import TokenServiceConcurrency

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Threads that run one at a time, so that synchronous code can stop between two accesses; they are reused.
final class ControlledThreads: Sendable {
    private struct State {
        var idle: [ControlledThread] = []
        /// The threads that run a step: one, and those whose step sleeps.
        var running: [ThreadIdentity] = []
        /// The system's numbers of the threads that have stopped or ended.
        var stopped: Set<Int32> = []
    }

    private let state = Lock(State())
    /// How long a step may take, in real time, before it counts as blocked.
    let stepSeconds: Double

    init(stepSeconds: Double) {
        self.stepSeconds = stepSeconds
    }

    /// Runs a step.
    ///
    /// - Returns: Whether the work ended; `false` if it stopped on the way, or blocked its thread.
    func run(_ entry: Engine.Entry, of engine: Engine) -> Bool {
        let thread: ControlledThread
        if case .thread(let stopped) = entry.work {
            thread = stopped
        } else {
            thread = state.withLock { $0.idle.popLast() } ?? ControlledThread(threads: self)
        }
        thread.begin(entry, of: engine)
        switch thread.wait(min(Self.usualSeconds, stepSeconds)) {
        case .ended:
            state.withLock { $0.idle.append(thread) }
            return true
        case .stopped:
            return false
        case .asleep:
            engine.state.withLock { state in
                state.sleepers.append(Engine.Sleeper(thread: thread, entry: entry))
                state.choices.omit(.sleepingStep)
            }
            return false
        }
    }

    /// Takes back a thread that was late.
    func takeBack(_ thread: ControlledThread) {
        state.withLock { $0.idle.append(thread) }
    }

    /// A step takes microseconds; one that takes longer is checked.
    private static let usualSeconds = 0.001

    /// Notes whether a thread runs a step; if not, it may run other code.
    func setRunning(_ thread: ThreadIdentity, _ runs: Bool) {
        let number = thread.systemNumber ?? 0
        state.withLock { state in
            state.running.removeAll { $0 == thread }
            if runs { state.running.append(thread) }
            if runs { state.stopped.remove(number) } else { state.stopped.insert(number) }
        }
    }

    /// Whether one of the threads, by their system numbers, has stopped inside a step and keeps what it holds.
    func haveStopped(oneOf numbers: [Int32]) -> Bool {
        state.withLock { state in numbers.contains { $0 != 0 && state.stopped.contains($0) } }
    }

    func isRunning(on thread: ThreadIdentity) -> Bool {
        state.withLock { $0.running.contains(thread) }
    }
}

extension Engine {
    /// Makes a thread that stopped inside a step runnable again.
    func pause(_ thread: ControlledThread, _ step: ControlledThread.Assignment, _ wait: Wait?) {
        let isLate = thread.isLate
        let callSite = wait == nil ? nil : callSite
        state.withLock { state in
            let next = Entry(
                work: .thread(thread), turn: step.turn, task: step.task, since: state.steps, wait: wait, process: step.process)
            if let callSite { state.callSites[step.task] = callSite }
            state.lanes.add(next, isLate: isLate)
        }
    }

    /// Fails the execution because the system has no thread for a step.
    func lackThread() {
        let name = state.withLock { $0.name(of: $0.lastTask) }
        fail(ExplorationProblem(.blockedThread, tasks: [name]), by: name, "gets no thread")
    }

    /// Fails the execution because a step has blocked its thread.
    ///
    /// - Parameters:
    ///   - holder: The task that holds what the step waits for, and can't run; `nil`: unknown.
    ///   - awaitsInput: Whether it waits for something else than a lock, a condition or a semaphore.
    func block(_ entry: Entry, by holder: Int?, awaitsInput: Bool) {
        let (name, other) = state.withLock { state in (state.name(of: entry.task), holder.map { state.name(of: $0) }) }
        if let other {
            let detail = " '\(name)' waits for a lock, which '\(other)' holds."
            let problem = ExplorationProblem(.deadlock, tasks: other == name ? [name] : [name, other], detail: detail)
            return fail(problem, by: name, "waits for a lock, which '\(other)' holds")
        }
        let remedy = awaitsInput ? " input or another call of the system, which is no lock: give the code a stub of it." : nil
        let seconds = threads.map { "\($0.stepSeconds)" } ?? ""
        let problem = ExplorationProblem(.blockedThread, tasks: [name], detail: seconds, remedy: remedy)
        fail(problem, by: name, "blocks its thread")
    }
}

/// Identifies a thread, to tell the engine's own from any other.
struct ThreadIdentity: Sendable, Equatable {
    let number: UInt

    static var current: ThreadIdentity {
        #if canImport(Darwin)
        unsafe ThreadIdentity(number: UInt(bitPattern: pthread_self()))
        #else
        ThreadIdentity(number: UInt(pthread_self()))
        #endif
    }
}
