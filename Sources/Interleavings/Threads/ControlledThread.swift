import Dispatch
import TokenServiceConcurrency

/// A thread that runs one step at a time.
///
/// It runs while it has the baton: the engine hands it over for a step, and the thread hands it back when it stops or ends.
final class ControlledThread: Sendable {
    enum StepResult {
        case ended
        case stopped
        case blocked
    }

    private struct State {
        /// The work it runs, and the engine that it runs for.
        var assignment: (entry: Engine.Entry, engine: Engine)?
        var hasBaton = false
        /// The step took too long: the engine no longer waits for it, and if it goes on, it does not stop again.
        var isAbandoned = false
        /// It makes a text for the report, and does not stop meanwhile.
        var isQuiet = false
    }

    private let threads: ControlledThreads
    private let queue = DispatchQueue(label: "interleavings.controlled-thread")
    private let baton = DispatchSemaphore(value: 0)
    private let returned = DispatchSemaphore(value: 0)
    private let state = Lock(State())

    private static let key = DispatchSpecificKey<ControlledThread>()

    /// The controlled thread that calls this; `nil` on any other thread.
    static var current: ControlledThread? { DispatchQueue.getSpecific(key: key) }

    init(threads: ControlledThreads) {
        self.threads = threads
    }

    /// Whether the execution's outcome is known, so that the thread need not wait any more.
    var isEnding: Bool {
        state.withLock { $0.assignment?.engine }?.state.withLock { $0.isWindingDown } ?? true
    }

    /// Begins a piece of work, or continues it after a stop, and waits until the step ends.
    func run(_ entry: Engine.Entry, of engine: Engine, within stepSeconds: Double) -> StepResult {
        state.withLock { state in
            state.assignment = (entry, engine)
            state.hasBaton = true
        }
        if case .thread = entry.work { baton.signal() } else { start(entry.work, of: engine) }
        let isLate = returned.wait(timeout: .now() + stepSeconds) == .timedOut
        return state.withLock { state in
            state.isAbandoned = isLate && state.hasBaton
            return state.isAbandoned ? .blocked : state.assignment == nil ? .ended : .stopped
        }
    }

    private func start(_ work: Engine.Work, of engine: Engine) {
        queue.setSpecific(key: Self.key, value: self)
        queue.async {
            self.threads.setRunning(.current)
            engine.run(work)
            // No cycle between the queue and the thread outlives the work.
            self.queue.setSpecific(key: Self.key, value: nil)
            self.handBack(ended: true)
        }
    }

    /// Stops between two accesses until it is picked again.
    ///
    /// - Parameter lock: The lock that must be free first.
    func pause(for lock: InterleavedLock.Gate? = nil) {
        let assignment = state.withLock { $0.isAbandoned || $0.isQuiet ? nil : $0.assignment }
        guard let assignment else { return }
        assignment.engine.pause(self, assignment.entry, lock: lock)
        handBack(ended: false)
        baton.wait()
        threads.setRunning(.current)
    }

    /// Notes for the report what the step does.
    func note(_ text: @autoclosure () -> String) {
        let assignment = state.withLock { $0.isAbandoned || $0.isQuiet ? nil : $0.assignment }
        assignment?.engine.log(text(), by: Simulation.taskName)
    }

    var isQuiet: Bool { state.withLock { $0.isQuiet } }

    /// Makes a text without stopping on the way.
    func quietly(_ text: () -> String) -> String {
        let wasQuiet = state.withLock { state in
            defer { state.isQuiet = true }
            return state.isQuiet
        }
        defer { state.withLock { $0.isQuiet = wasQuiet } }
        return text()
    }

    private func handBack(ended: Bool) {
        let isAwaited = state.withLock { state in
            state.hasBaton = false
            if ended { state.assignment = nil }
            return !state.isAbandoned
        }
        guard isAwaited else { return }
        threads.setRunning(nil)
        returned.signal()
    }
}
