import TokenServiceConcurrency

/// Waiting for the engine. A wait always suspends, so that an endless loop of waits reaches the step limit.
extension Engine {
    /// A task that waits until nothing else can run.
    struct IdleWaiter: Sendable {
        let waitsForTimers: Bool
        let suspension: Suspension
    }

    /// A task that becomes runnable before the next step.
    enum Resumption: Sendable {
        case waited(Suspension, Suspension.Ending)
        case yield(Job, process: Int?)

        /// The simulated process of the task; `nil`: none.
        var process: Int? {
            switch self {
            case .waited(let suspension, _): suspension.process
            case .yield(_, let process): process
            }
        }
    }

    func newTimer() -> Int {
        expectHome("simulation.clock")
        return state.withLock { $0.clock.newTimer() }
    }

    func sleep(_ id: Int, until deadline: Duration, _ suspension: Suspension, sleeper: UInt32 = 0) {
        wait(suspension) { state, suspension in
            if deadline <= state.clock.now {
                state.resumptions.append(.waited(suspension, .due))
            } else {
                state.clock.add(Timer(id: id, deadline: deadline, suspension: suspension, sleeper: sleeper), at: state.steps)
            }
        }
    }

    /// Ends a sleep whose task is cancelled.
    func cancelTimer(_ id: Int) {
        state.withLock { $0.clock.remove(id) }?.end(.cancelled)
    }

    /// Ends a sleep that is still being registered, but later: ended at once, it would not suspend.
    func cancelNewTimer(_ id: Int) {
        state.withLock { state in
            guard let suspension = state.clock.remove(id) else { return }
            state.resumptions.append(.waited(suspension, .cancelled))
        }
    }

    func settle(waitsForTimers: Bool) async throws {
        expectHome("simulation.settle")
        try await Suspension.begin { suspension in
            wait(suspension) { $0.idleWaiters.append(IdleWaiter(waitsForTimers: waitsForTimers, suspension: $1)) }
        }
    }

    private func wait(_ suspension: Suspension, _ register: (inout State, Suspension) -> Void) {
        let isTaken = state.withLock { state in
            guard state.phase != .over else { return false }
            register(&state, suspension.of(state.process))
            return true
        }
        if !isTaken { endLate(suspension) }
    }
}

extension Engine.State {
    /// Moves time to the earliest deadline; all tasks due then become runnable, and the schedule picks their order.
    mutating func advance(_ pick: Int) -> [Engine.Resumption] {
        let due = clock.advance(at: steps, without: frozen)
        lastTask = Self.timeTask
        record(pick, task: "", lane: nil)
        if recorder != nil, let waiting = candidateTasks.first(where: { $0 != Self.timeTask }), let first = due.first {
            let (timer, task) = (name(of: first.suspension, first.sleeper), name(of: waiting))
            recorder?.noteEarly(timer: timer, before: task, at: choices.steps)
        }
        return due.map { .waited($0.suspension, .due) }
    }

    /// Takes a task that waited until nothing else can run; among several the chooser picks one.
    mutating func takeIdleWaiter() -> Engine.Resumption? {
        let running = idleWaiters.indices.filter { !isFrozen(idleWaiters[$0].suspension.process) }
        var waiting = running.filter { !idleWaiters[$0].waitsForTimers }
        if waiting.isEmpty, !hasRunningTimer() { waiting = running }
        guard !waiting.isEmpty else { return nil }
        let pick = choices.value(below: waiting.count)
        return .waited(idleWaiters.remove(at: waiting[pick]).suspension, .due)
    }

    /// Takes the tasks whose wait ended before they suspended.
    mutating func takeResumptions() -> [Engine.Resumption] {
        defer { resumptions.removeAll(keepingCapacity: true) }
        return resumptions
    }

    /// Cancels the waits that can throw, because the execution is over.
    ///
    /// All others stay asleep unless their tasks are cancelled: woken early, they would believe that their time has come, and a
    /// limit might end the process. Cancelled by the explorer, a loop of sleeps would never suspend again.
    mutating func giveUpWaiting() {
        let waiting = clock.takeThrowing().map(\.suspension) + idleWaiters.map(\.suspension)
        resumptions += waiting.map { .waited($0, .cancelled) }
        idleWaiters = []
    }
}

/// A suspended task that waits for the engine.
///
/// Safe because it ends exactly once: only the code that takes it out of the state ends it. A checked continuation costs an
/// allocation, and reports a leak if an explored program loses one of its own.
@safe struct Suspension: Sendable {
    /// Why the wait ends.
    enum Ending: Sendable {
        /// The event that the task waited for has happened.
        case due
        /// The execution or the task is over.
        case cancelled
    }

    @safe private enum Waiter {
        case continuation(UnsafeContinuation<Void, any Error>)
        /// The runtime's own job, which ends a sleep.
        case sleep(Job)
        /// Not a task, but work that becomes due.
        case work(@Sendable () -> Void)
    }

    private let waiter: Waiter
    /// The task that waits.
    let task: TaskIdentity?
    /// The simulated process of the task or the work; `nil`: none.
    private(set) var process: Int?

    /// The job that ends the wait; `nil`: the wait isn't the runtime's own sleep.
    // Not inlined: with the Thread Sanitizer, the optimizer of Swift 6.3.1 crashes with an "ownership error" in its callers.
    @inline(never)
    var job: Job? { if case .sleep(let job) = waiter { job } else { nil } }

    /// Whether it can end with an error, as a sleep by the simulation's clock does.
    var canThrow: Bool { if case .continuation = waiter { true } else { false } }

    /// Returns the same wait as part of a process.
    func of(_ process: Int?) -> Suspension {
        var suspension = self
        suspension.process = process
        return suspension
    }

    init(sleep job: Job) {
        waiter = .sleep(job)
        task = .current
    }

    init(work: @escaping @Sendable () -> Void) {
        waiter = .work(work)
        task = nil
    }

    private init(_ continuation: UnsafeContinuation<Void, any Error>) {
        unsafe waiter = .continuation(continuation)
        task = .current
    }

    /// Suspends the calling task.
    ///
    /// - Parameter register: Stores the suspension where its event will find it.
    static func begin(_ register: (Suspension) -> Void) async throws {
        try await unsafe withUnsafeThrowingContinuation { unsafe register(Suspension($0)) }
    }

    func end(_ ending: Ending) {
        switch (waiter, ending) {
        case (.continuation(let continuation), .due): unsafe continuation.resume()
        case (.continuation(let continuation), .cancelled): unsafe continuation.resume(throwing: CancellationError())
        case (.sleep(let job), _): job.run()
        case (.work(let work), _): work()
        }
    }
}
