import Dispatch
import TokenServiceConcurrency

/// A thread of a crew.
///
/// Who has the baton runs; it goes to the worker when it is picked, and back when it stops or ends.
final class Worker: Sendable {
    enum Return {
        case ended
        case stopped
        case blocked
    }

    private struct State {
        /// What it runs, and for whom.
        var duty: (entry: Engine.Entry, engine: Engine)?
        var hasBaton = false
        /// It did not come back in time: nobody waits for it any more, and if it ever goes on, it doesn't stop again.
        var isAbandoned = false
        /// It makes a text for the report, where nothing stops it.
        var isQuiet = false
    }

    private let crew: Crew
    private let queue = DispatchQueue(label: "interleavings.worker")
    private let baton = DispatchSemaphore(value: 0)
    private let back = DispatchSemaphore(value: 0)
    private let state = Lock(State())

    private static let key = DispatchSpecificKey<Worker>()

    /// The worker on whose thread this is called.
    static var current: Worker? { DispatchQueue.getSpecific(key: key) }

    init(crew: Crew) {
        self.crew = crew
    }

    /// Whether the outcome is known, so that nothing must be waited for any more.
    var isEnding: Bool {
        state.withLock { $0.duty?.engine }?.state.withLock { $0.isWindingDown } ?? true
    }

    /// Begins a piece of work, or goes on with it after a stop, and waits for the baton.
    func run(_ entry: Engine.Entry, of engine: Engine, within stepSeconds: Double) -> Return {
        state.withLock { state in
            state.duty = (entry, engine)
            state.hasBaton = true
        }
        if case .thread = entry.work { baton.signal() } else { start(entry.work, of: engine) }
        let isLate = back.wait(timeout: .now() + stepSeconds) == .timedOut
        return state.withLock { state in
            state.isAbandoned = isLate && state.hasBaton
            return state.isAbandoned ? .blocked : state.duty == nil ? .ended : .stopped
        }
    }

    private func start(_ work: Engine.Work, of engine: Engine) {
        queue.setSpecific(key: Self.key, value: self)
        queue.async {
            self.crew.hasStep(on: .current)
            engine.run(work)
            // No cycle between the queue and the worker outlives the work.
            self.queue.setSpecific(key: Self.key, value: nil)
            self.handBack(ended: true)
        }
    }

    /// Stops between two accesses until it is picked again.
    ///
    /// - Parameter lock: What must be free for that.
    func pause(for lock: InterleavedLock.Gate? = nil) {
        let duty = state.withLock { $0.isAbandoned || $0.isQuiet ? nil : $0.duty }
        guard let duty else { return }
        duty.engine.pause(self, duty.entry, lock: lock)
        handBack(ended: false)
        baton.wait()
        crew.hasStep(on: .current)
    }

    /// Says, for the report, what the step does.
    func note(_ text: @autoclosure () -> String) {
        let duty = state.withLock { $0.isAbandoned || $0.isQuiet ? nil : $0.duty }
        duty?.engine.log(text(), by: Simulation.taskName)
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
            if ended { state.duty = nil }
            return !state.isAbandoned
        }
        guard isAwaited else { return }
        crew.hasStep(on: nil)
        back.signal()
    }
}
