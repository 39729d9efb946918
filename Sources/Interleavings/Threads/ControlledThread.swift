import Dispatch
import TokenServiceConcurrency

/// A thread that runs one step at a time.
///
/// It runs while it has the baton: the engine hands it over for a step, and the thread returns it when it stops or ends.
final class ControlledThread: Sendable {
    enum StepResult {
        case ended
        case stopped
        /// It waits in the kernel, probably for something that a stopped thread holds.
        case asleep
    }

    /// What it runs a piece of work for.
    ///
    /// The work itself isn't kept: each stop would retain all that it has.
    struct Assignment {
        let engine: Engine
        let turn: Engine.Turn
        let task: Int
        let process: Int?
    }

    private struct State {
        var assignment: Assignment?
        var hasBaton = false
        /// The thread that runs the work, once the work has begun.
        var identity: ThreadIdentity?
        /// Whether the engine lets other threads continue, because this thread's step sleeps.
        var isLate = false
        /// The last sleep during which others continued.
        var sleep: Int?
        /// Whether the step took too long: the engine no longer waits for it, and it doesn't stop again.
        var isAbandoned = false
        /// Whether its step is an exploration of its own, which waits for threads all the time.
        var isExploring = false
        /// Whether it is creating a text for the report, and must not stop meanwhile.
        var isQuiet = false
        /// The doors of its steps; `nil`: they have none.
        var session: (any DoorSession)?
    }

    private let threads: ControlledThreads
    private let worker = Worker()
    private let baton = DispatchSemaphore(value: 0)
    private let returned = DispatchSemaphore(value: 0)
    private let state = Lock(State())

    private static let own = ThreadValue<ControlledThread>()
    /// Stops at the points that our other modules mark, which don't link the explorer.
    private static let hearsMarkedPoints: Void = hearMarkedPoints { interleavingPoint($0) }

    /// The controlled thread that calls this; `nil` on any other thread.
    static var current: ControlledThread? { own.value }

    init(threads: ControlledThreads) {
        self.threads = threads
        _ = Self.hearsMarkedPoints
    }

    /// The engine of the execution that it works for; `nil`: none.
    var engine: Engine? { state.withLock { $0.assignment?.engine } }

    /// The task of its step, by the engine's number; `nil`: it has none, or doesn't stop where it has to wait.
    var task: Int? { state.withLock { $0.isAbandoned || $0.isQuiet ? nil : $0.assignment?.task } }

    /// The system's number of the thread that runs its step; `nil`: unknown.
    var systemNumber: Int32? { state.withLock { $0.identity }?.systemNumber }

    /// The system's numbers of threads, one of which holds the lock for which the step sleeps.
    var possibleHolders: [Int32] { state.withLock { $0.identity }?.possibleHolders ?? [] }

    /// Whether its step sleeps for something else than a lock, a condition or a semaphore.
    var awaitsInput: Bool { state.withLock { $0.identity }?.awaitsInput ?? false }

    /// Whether it stops where it has to wait: not if the engine has given it up, nor while it creates a text.
    var canStop: Bool { state.withLock { !$0.isAbandoned && !$0.isQuiet } }

    /// Begins a piece of work, or continues it after a stop.
    func begin(_ entry: Engine.Entry, of engine: Engine) {
        state.withLock { state in
            state.assignment = Assignment(engine: engine, turn: entry.turn, task: entry.task, process: entry.process)
            state.hasBaton = true
        }
        if case .thread = entry.work { baton.signal() } else { start(entry.work, of: engine) }
    }

    /// Waits until the step ends, or sleeps in the kernel.
    ///
    /// - Parameter seconds: How long the step must have lasted before it is checked.
    func wait(_ seconds: Double) -> StepResult {
        var seconds = seconds, seen = 0
        while returned.wait(timeout: .now() + seconds) == .timedOut {
            seconds = Self.lookSeconds
            let (identity, known) = state.withLock { ($0.isExploring ? nil : $0.identity, $0.isLate ? $0.sleep : nil) }
            guard let thread = identity, let sleep = thread.sleep else {
                seen = 0
                continue
            }
            seen += 1
            // If it wasn't woken since others continued, it still waits. Otherwise it may be waiting only briefly, like any step.
            let isSure = sleep == known || seen >= Self.enoughSightings
            guard isSure || threads.haveStopped(oneOf: thread.possibleHolders) else { continue }
            // A woken thread could run at once; if it is asleep and hasn't returned, it still waits.
            guard returned.wait(timeout: .now()) == .timedOut else { break }
            state.withLock { ($0.isLate, $0.sleep) = (true, sleep) }
            return .asleep
        }
        return state.withLock { state in
            state.isLate = false
            return state.assignment == nil ? .ended : .stopped
        }
    }

    /// How often in a row a step must be seen asleep before others continue, and how long to wait in between.
    ///
    /// Once is enough if it waits for a lock that a stopped thread holds. Otherwise it may be waiting briefly for an outside
    /// thread, such as for a lock of the runtime or a sanitizer, or for the first use of a global; on a loaded machine that
    /// thread runs as seldom as the checking one.
    private static let enoughSightings = 40
    private static let lookSeconds = 0.0025

    /// Stops waiting for the step, unless it ends at that moment.
    func abandon(after seconds: Double) -> StepResult? {
        let isLate = returned.wait(timeout: .now() + seconds) == .timedOut
        return state.withLock { state in
            state.isLate = false
            state.isAbandoned = isLate && state.hasBaton
            return state.isAbandoned ? nil : state.assignment == nil ? .ended : .stopped
        }
    }

    /// Runs an exploration inside the step.
    func exploring<Result>(_ body: () throws -> Result) rethrows -> Result {
        state.withLock { $0.isExploring = true }
        defer { state.withLock { $0.isExploring = false } }
        guard let session = state.withLock({ $0.session }) else { return try body() }
        return try session.away(body)
    }

    /// Whether other threads continue during its step, so that its jobs must be kept apart from theirs.
    var isLate: Bool { state.withLock { $0.isLate } }

    private func start(_ work: Engine.Work, of engine: Engine) {
        let doors = engine.doors
        state.withLock { state in
            state.identity = nil
            state.session = doors.session
        }
        let isRun = worker.run {
            self.state.withLock { $0.identity = .current }
            self.threads.setRunning(.current, true)
            engine.blackBox?.setThread(.current)
            Self.own.with(self) { doors.step { engine.run(work) } }
            self.state.withLock { $0.session = nil }
            self.handBack(ended: true)
        }
        guard !isRun else { return }
        engine.lackThread()
        handBack(ended: true)
    }

    /// Stops until it is picked again: between two accesses, or until its wait is over.
    func pause(for wait: Engine.Wait? = nil) {
        let (assignment, session) = state.withLock { state in
            (state.isAbandoned || state.isQuiet ? nil : state.assignment, state.session)
        }
        guard let assignment, wait != nil || assignment.engine.stopsAtPoints else { return }
        // Close the doors: these calls are the explorer's own.
        if let session { session.away { stop(assignment, wait) } } else { stop(assignment, wait) }
    }

    private func stop(_ assignment: Assignment, _ wait: Engine.Wait?) {
        assignment.engine.pause(self, assignment, wait)
        handBack(ended: false)
        baton.wait()
        threads.setRunning(.current, true)
        assignment.engine.blackBox?.setThread(.current)
    }

    /// Notes an action of the step for the report.
    func note(_ text: @autoclosure () -> String) {
        let assignment = state.withLock { $0.isAbandoned || $0.isQuiet ? nil : $0.assignment }
        assignment?.engine.log(text(), by: assignment?.engine.author(Simulation.taskName))
    }

    var isQuiet: Bool { state.withLock { $0.isQuiet } }

    /// Creates a text without stopping.
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
        threads.setRunning(.current, false)
        returned.signal()
    }
}
