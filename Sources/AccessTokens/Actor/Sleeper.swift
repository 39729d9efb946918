import Synchronization
import TokenServiceConcurrency

/// Rings alarms when their time has come: one task sleeps until the earliest of them, until an earlier one is set.
///
/// All services on the default clock share one, so that the limit of a load that ends in time costs a place in a heap, and no task.
package final class Sleeper: Sendable {
    package typealias Ring = @Sendable (_ now: Duration) async -> Void

    /// Something to do at a time, unless it is called off before.
    final class Alarm: Sendable {
        let sleeper: Sleeper
        /// When it rings.
        let time: Duration
        /// What it does; `nil`: it has rung, or has been called off.
        private let bell: Lock<Bell?>

        /// In a value of its own: generic code would wrap a bare function in another, in and out.
        private struct Bell {
            let ring: Ring
        }

        /// Makes an alarm; ``set()`` sets it.
        init(of sleeper: Sleeper, at time: Duration, ring: @escaping Ring) {
            (self.sleeper, self.time) = (sleeper, time)
            bell = Lock(Bell(ring: ring))
        }

        /// Whether it has neither rung nor been called off.
        var isPending: Bool { bell.withLock { $0 != nil } }

        func set() { sleeper.add(self) }

        /// Returns whether it would have rung.
        @discardableResult
        func callOff() -> Bool {
            guard takeTurn() != nil else { return false }
            sleeper.forgetOne()
            return true
        }

        /// What it does; it can ring, or be called off, once.
        fileprivate func takeTurn() -> Ring? { bell.withLock { $0.take() }?.ring }
    }

    private struct State {
        var alarms = LimitHeap<Alarm>()
        /// How many of them have been called off.
        var forgotten = 0
        /// The tasks that sleep: the one that wakes first comes last.
        var sleeps: [(end: Duration, task: Task<Void, any Error>?)] = []

        mutating func takeSleeps() -> [(end: Duration, task: Task<Void, any Error>?)] {
            defer { sleeps = [] }
            return sleeps
        }
    }

    /// From so many sleeps on, the next one ends when half of its time has passed: so times that come each a little earlier than the
    /// one before don't make a sleep each, but one for each halving, down to a millisecond.
    private static let many = 4
    /// So many alarms that were called off may stay where they are.
    private static let few = 64

    /// The one of all services on the default clock.
    static let shared = Sleeper(clock: .continuous, executor: nil)

    let clock: ServiceClock
    private let executor: (any TaskExecutor)?
    private let state = Lock(State())

    init(clock: ServiceClock, executor: (any TaskExecutor)?) {
        self.clock = clock
        self.executor = executor
    }

    deinit {
        for sleep in state.withLock({ $0.takeSleeps() }) { sleep.task?.cancel() }
    }

    /// How many alarms it keeps, and how many tasks sleep for them.
    var counts: (alarms: Int, sleeps: Int) { state.withLock { ($0.alarms.count, $0.sleeps.count) } }

    private func add(_ alarm: Alarm) {
        let isFirst = state.withLock { state in
            // Another thread may have called it off before it was set.
            guard alarm.isPending else { return false }
            state.alarms.insert(alarm, at: alarm.time)
            return state.sleeps.last.map { alarm.time < $0.end } ?? true
        }
        if isFirst { sleep(until: alarm.time) }
    }

    /// An alarm has been called off; it goes from the heap with the others that were.
    ///
    /// On the system's clocks the sleep goes on. The runtime keeps a cancelled sleep until its time in any case; the one that goes on
    /// serves the next alarms, so that a thousand loads don't leave a thousand.
    private func forgetOne() {
        let isSystemClock = clock.isSystemClock
        let ended = state.withLock { state in
            state.forgotten += 1
            if state.forgotten >= state.alarms.count || state.forgotten > max(Self.few, state.alarms.count / 2) {
                state.alarms.purge { !$0.isPending }
                state.forgotten = 0
            }
            return isSystemClock || state.alarms.count > 0 ? [] : state.takeSleeps()
        }
        for sleep in ended { sleep.task?.cancel() }
    }

    /// Makes sure that a task looks at the alarms at this time.
    private func sleep(until time: Duration) {
        let rest = time - clock.now()
        let end: Duration? = state.withLock { state in
            if let next = state.sleeps.last?.end, next <= time { return nil }
            let isCrowded = state.sleeps.count >= Self.many && rest > .milliseconds(1)
            let end = isCrowded ? time - rest / 2 : time
            state.sleeps.append((end, nil))
            return end
        }
        guard let end else { return }
        let task = Task.detached(on: executor) { [weak self, clock] in
            guard await clock.hasPassed(end) else { return }
            // A clock that can't sleep counts as having passed the time.
            await self?.wake(from: end, at: max(clock.now(), end))
        }
        let isNeeded = state.withLock { state in
            guard let index = state.sleeps.firstIndex(where: { $0.end == end }) else { return false }
            state.sleeps[index].task = task
            return true
        }
        // It woke meanwhile, or was ended before it was known.
        if !isNeeded { task.cancel() }
    }

    /// A task has woken at the end of its sleep.
    private func wake(from end: Duration, at now: Duration) async {
        var (due, next) = state.withLock { state in
            state.sleeps.removeAll { $0.end == end }
            var due: [Ring] = []
            while let alarm = state.alarms.removeEarliest(until: now) {
                if let ring = alarm.takeTurn() { due.append(ring) } else { state.forgotten -= 1 }
            }
            return (due, state.alarms.earliest)
        }
        // First the sleep of those that are left: whom this one wakes may keep it for long.
        if let next { sleep(until: next) }
        let last = due.popLast()
        for ring in due { Task.detached(on: executor) { await ring(now) } }
        await last?(now)
    }
}
