import Dispatch
import TokenServiceConcurrency

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
