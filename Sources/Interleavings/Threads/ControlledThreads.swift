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
        var running: ThreadIdentity?
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
        switch thread.run(entry, of: engine, within: stepSeconds) {
        case .ended:
            state.withLock { $0.idle.append(thread) }
            return true
        case .stopped:
            return false
        case .blocked:
            engine.block(entry)
            return false
        }
    }

    /// Notes which thread runs a step; `nil`: none does, and the thread may run other code.
    func setRunning(_ thread: ThreadIdentity?) {
        state.withLock { $0.running = thread }
    }

    func isRunning(on thread: ThreadIdentity) -> Bool {
        state.withLock { $0.running } == thread
    }
}

extension Engine {
    /// Makes a thread runnable again that stopped on its way.
    func pause(_ thread: ControlledThread, _ entry: Entry, lock: InterleavedLock.Gate?) {
        state.withLock { state in
            let work = Work.thread(thread)
            let since = state.steps
            state.ready.append(Entry(work: work, lane: entry.lane, task: entry.task, since: since, lock: lock))
        }
    }

    /// Fails the execution because a step has blocked its thread.
    func block(_ entry: Entry) {
        let name = state.withLock { $0.name(of: entry.task) }
        let problem = ExplorationProblem(.blockedThread, tasks: [name], detail: threads.map { "\($0.stepSeconds)" } ?? "")
        fail(problem, by: name, "blocks its thread")
    }
}

/// Identifies a thread, to tell the engine's own from any other.
struct ThreadIdentity: Sendable, Equatable {
    private let number: UInt

    static var current: ThreadIdentity {
        #if canImport(Darwin)
        unsafe ThreadIdentity(number: UInt(bitPattern: pthread_self()))
        #else
        ThreadIdentity(number: UInt(pthread_self()))
        #endif
    }
}
