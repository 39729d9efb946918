import TokenServiceConcurrency

/// Those who wait for the engine. Whoever waits suspends, always: a loop around it then takes steps, and its end is seen.
extension Engine {
    /// Somebody who sleeps.
    struct Timer: Sendable {
        let id: Int
        let deadline: Duration
        let suspension: Suspension
    }

    /// Somebody who waits until nothing else can be done.
    struct Settler: Sendable {
        let waitsForTimers: Bool
        let suspension: Suspension
    }

    /// Somebody who becomes runnable before the next step.
    enum Awake: Sendable {
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
                state.awake.append(.waited(suspension, .due))
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

    /// The same while it is being registered, when to end it would be not to suspend.
    func cancelNewTimer(_ id: Int) {
        state.withLock { state in
            guard let suspension = state.removeTimer(id) else { return }
            state.awake.append(.waited(suspension, .cancelled))
        }
    }

    func settle(waitsForTimers: Bool) async throws {
        try await Suspension.begin { suspension in
            wait(suspension) { $0.settlers.append(Settler(waitsForTimers: waitsForTimers, suspension: suspension)) }
        }
    }

    private func wait(_ suspension: Suspension, _ register: (inout State) -> Void) {
        let isTaken = state.withLock { state in
            guard !state.isOver else { return false }
            if state.isWindingDown {
                state.awake.append(.waited(suspension, .cancelled))
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

    /// Moves time to the earliest deadline; all who are due then may go on, in an order that is again picked.
    mutating func advance(_ pick: Int) -> [Engine.Awake] {
        now = timers.reduce(timers[0].deadline) { min($0, $1.deadline) }
        let due = timers.filter { $0.deadline <= now }
        timers.removeAll { $0.deadline <= now }
        lastTask = Self.timeTask
        timeSince = steps
        record(pick, task: "", place: "")
        return due.map { .waited($0.suspension, .due) }
    }

    /// Somebody who waited until nothing else can be done, which is now.
    mutating func takeSettler() -> Engine.Awake? {
        let index = settlers.firstIndex { !$0.waitsForTimers } ?? (timers.isEmpty ? settlers.indices.first : nil)
        return index.map { .waited(settlers.remove(at: $0).suspension, .due) }
    }

    /// Those who were ended while they began to wait.
    mutating func takeAwake() -> [Engine.Awake] {
        defer { awake.removeAll(keepingCapacity: true) }
        return awake
    }

    /// Everybody who waits, because everything is over.
    mutating func giveUpWaiting() {
        let waiting = timers.map(\.suspension) + settlers.map(\.suspension)
        awake += waiting.map { .waited($0, .cancelled) }
        timers = []
        settlers = []
    }
}

/// Somebody who waits for the engine.
///
/// Safe as long as it ends exactly once, by whoever takes it out of the state. Not a checked continuation: those cost an
/// allocation each, and complain where an explored program loses one of its own.
@safe struct Suspension: Sendable {
    /// Why it ends.
    enum Ending: Sendable {
        /// What was waited for is there.
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
