import TokenServiceConcurrency

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Threads that run one at a time, so that synchronous code can be stopped between two accesses.
///
/// Workers are reused.
final class Crew: Sendable {
    private struct State {
        var idle: [Worker] = []
        var running: ThreadIdentity?
    }

    private let state = Lock(State())
    /// How long a step may take, in real time; beyond, it is taken for blocked.
    let stepSeconds: Double

    init(stepSeconds: Double) {
        self.stepSeconds = stepSeconds
    }

    /// Runs a step.
    ///
    /// - Returns: Whether the work ended; `false` if it stopped on the way, or blocked its thread.
    func run(_ entry: Engine.Entry, of engine: Engine) -> Bool {
        let worker: Worker
        if case .thread(let stopped) = entry.work {
            worker = stopped
        } else {
            worker = state.withLock { $0.idle.popLast() } ?? Worker(crew: self)
        }
        switch worker.run(entry, of: engine, within: stepSeconds) {
        case .ended:
            state.withLock { $0.idle.append(worker) }
            return true
        case .stopped:
            return false
        case .blocked:
            engine.block(entry)
            return false
        }
    }

    /// A worker has the step, on this thread; `nil`: none has, and its thread may run what is not ours.
    func hasStep(on thread: ThreadIdentity?) {
        state.withLock { $0.running = thread }
    }

    func isRunning(on thread: ThreadIdentity) -> Bool {
        state.withLock { $0.running } == thread
    }
}

extension Engine {
    /// Takes a thread that stopped on its way.
    func pause(_ worker: Worker, _ entry: Entry, lock: InterleavedLock.Gate?) {
        state.withLock { state in
            let work = Work.thread(worker)
            let since = state.steps
            state.ready.append(Entry(work: work, lane: entry.lane, task: entry.task, since: since, lock: lock))
        }
    }

    /// A step that does not come back has blocked its thread.
    func block(_ entry: Entry) {
        let name = state.withLock { $0.name(of: entry.task) }
        let problem = ExplorationProblem(.blockedThread, tasks: [name], detail: crew.map { "\($0.stepSeconds)" } ?? "")
        fail(problem, by: name, "blocks its thread")
    }
}

/// Which thread this is: for telling the engine's own from any other.
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
