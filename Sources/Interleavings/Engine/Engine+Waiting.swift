import TokenServiceConcurrency

/// Waiting for the engine. A wait always suspends, so that a loop of waits takes steps and reaches the step limit.
extension Engine {
    /// A sleeping task.
    struct Timer: Sendable {
        let id: Int
        let deadline: Duration
        let suspension: Suspension
    }

    /// A task that waits until nothing else can run.
    struct IdleWaiter: Sendable {
        let waitsForTimers: Bool
        let suspension: Suspension
    }

    /// A task that becomes runnable before the next step.
    enum Resumption: Sendable {
        case waited(Suspension, Suspension.Ending)
        case yield(Job)
    }

    func newTimer() -> Int {
        state.withLock { state in
            state.timerCount += 1
            return state.timerCount
        }
    }

    func sleep(_ id: Int, until deadline: Duration, _ suspension: Suspension) {
        wait(suspension) { state in
            if deadline <= state.now {
                state.resumptions.append(.waited(suspension, .due))
            } else {
                if state.timers.isEmpty { state.timeSince = state.steps }
                state.timers.append(Timer(id: id, deadline: deadline, suspension: suspension))
            }
        }
    }

    /// Ends a sleep whose task is cancelled.
    func cancelTimer(_ id: Int) {
        state.withLock { state in state.removeTimer(id) }?.end(.cancelled)
    }

    /// The same while the sleep is being registered: ended now, it would not suspend.
    func cancelNewTimer(_ id: Int) {
        state.withLock { state in
            guard let suspension = state.removeTimer(id) else { return }
            state.resumptions.append(.waited(suspension, .cancelled))
        }
    }

    func settle(waitsForTimers: Bool) async throws {
        try await Suspension.begin { suspension in
            wait(suspension) { $0.idleWaiters.append(IdleWaiter(waitsForTimers: waitsForTimers, suspension: suspension)) }
        }
    }

    private func wait(_ suspension: Suspension, _ register: (inout State) -> Void) {
        let isTaken = state.withLock { state in
            guard !state.isOver else { return false }
            if state.isWindingDown {
                state.resumptions.append(.waited(suspension, .cancelled))
            } else {
                register(&state)
            }
            return true
        }
        if !isTaken { endLate(suspension) }
    }
}

extension Engine.State {
    fileprivate mutating func removeTimer(_ id: Int) -> Suspension? {
        timers.firstIndex { $0.id == id }.map { timers.remove(at: $0).suspension }
    }

    /// Moves time to the earliest deadline; all tasks due then become runnable, and their order is picked again.
    mutating func advance(_ pick: Int) -> [Engine.Resumption] {
        now = timers.reduce(timers[0].deadline) { min($0, $1.deadline) }
        let due = timers.filter { $0.deadline <= now }
        timers.removeAll { $0.deadline <= now }
        lastTask = Self.timeTask
        timeSince = steps
        record(pick, task: "", place: "")
        return due.map { .waited($0.suspension, .due) }
    }

    /// Takes a task that waited until nothing else can run, which is now.
    mutating func takeIdleWaiter() -> Engine.Resumption? {
        let index = idleWaiters.firstIndex { !$0.waitsForTimers } ?? (timers.isEmpty ? idleWaiters.indices.first : nil)
        return index.map { .waited(idleWaiters.remove(at: $0).suspension, .due) }
    }

    /// Takes the tasks whose wait ended before they suspended.
    mutating func takeResumptions() -> [Engine.Resumption] {
        defer { resumptions.removeAll(keepingCapacity: true) }
        return resumptions
    }

    /// Cancels all waits, because the execution is over.
    mutating func giveUpWaiting() {
        let waiting = timers.map(\.suspension) + idleWaiters.map(\.suspension)
        resumptions += waiting.map { .waited($0, .cancelled) }
        timers = []
        idleWaiters = []
    }
}

/// A suspended task that waits for the engine.
///
/// Safe because it ends exactly once: only the code that takes it out of the state ends it. A checked continuation costs an
/// allocation, and complains where an explored program loses one of its own.
@safe struct Suspension: Sendable {
    /// Why the wait ends.
    enum Ending: Sendable {
        /// What the task waited for has happened.
        case due
        /// The execution or the task is over.
        case cancelled
    }

    private let continuation: UnsafeContinuation<Void, any Error>

    /// Suspends the calling task.
    ///
    /// - Parameter register: Puts the suspension where it will be found.
    static func begin(_ register: (Suspension) -> Void) async throws {
        try await unsafe withUnsafeThrowingContinuation { unsafe register(Suspension(continuation: $0)) }
    }

    func end(_ ending: Ending) {
        switch ending {
        case .due: unsafe continuation.resume()
        case .cancelled: unsafe continuation.resume(throwing: CancellationError())
        }
    }
}
