import Synchronization
import TokenServiceConcurrency

/// Rings alarms at their times; one task sleeps until the earliest, and another task is added if an earlier alarm is set.
///
/// All services on the default clock share one, so the limit of a load that ends in time costs an entry in a heap and no task.
package final class Sleeper: Sendable {
    package typealias Ring = @Sendable (_ now: Duration) async -> Void

    /// An action to perform at a time, unless it is cancelled before.
    struct Alarm: Sendable {
        let sleeper: Sleeper
        /// When it rings.
        let time: Duration
        fileprivate let place: Place
        /// Whether every existing sleep would end too late for it when it was added.
        fileprivate let isFirst: Bool

        /// Whether it hasn't rung or been cancelled yet.
        var isPending: Bool { sleeper.state.withLock { $0.holds(place) } }

        /// Makes sure that a task wakes at its time.
        func set() {
            if isFirst { sleeper.sleep(until: time) }
        }

        /// Cancels the alarm; returns whether it was still pending.
        @discardableResult
        func callOff() -> Bool { sleeper.callOff(place) }
    }

    /// The slot of an alarm's bell; the number distinguishes it from a later bell in the same slot.
    fileprivate struct Place: Sendable {
        let slot: Int, number: Int
    }

    /// An alarm's action, in a struct because generic code wraps a bare function in another one each time.
    private struct Bell {
        let ring: Ring
    }

    private struct State {
        /// The alarms in the order of their times, including some that were cancelled and have no bell any more.
        var alarms = LimitHeap<Place>()
        /// How many of them have been cancelled.
        var forgotten = 0
        /// The sleeping tasks; the one that wakes first comes last.
        var sleeps: [(end: Duration, task: Task<Void, any Error>?)] = []
        /// The alarms' bells, in slots that are reused; free slots have none.
        private(set) var bells: ContiguousArray<(number: Int, bell: Bell?)> = []
        private var free: ContiguousArray<Int> = []
        private var number = 0

        mutating func add(_ bell: Bell, at time: Duration) -> Place {
            number += 1
            let place = Place(slot: free.popLast() ?? bells.count, number: number)
            if place.slot < bells.count { bells[place.slot] = (number, bell) } else { bells.append((number, bell)) }
            alarms.insert(place, at: time)
            return place
        }

        func holds(_ place: Place) -> Bool { bells[place.slot].number == place.number }

        /// Removes and returns an alarm's action, so that it is performed or cancelled only once.
        mutating func takeBell(at place: Place) -> Bell? {
            guard holds(place) else { return nil }
            bells[place.slot].number = 0
            free.append(place.slot)
            return bells[place.slot].bell.take()
        }

        /// Counts a cancelled alarm; it leaves the heap together with others.
        mutating func forgetOne() {
            forgotten += 1
            guard forgotten >= alarms.count || forgotten > max(Sleeper.few, alarms.count / 2) else { return }
            let bells = bells
            alarms.purge { bells[$0.slot].number != $0.number }
            forgotten = 0
        }

        mutating func takeSleeps() -> [(end: Duration, task: Task<Void, any Error>?)] {
            defer { sleeps = [] }
            return sleeps
        }
    }

    /// The number of sleeps from which a new one lasts only half the time until its alarm.
    ///
    /// So a series of times that each come a little earlier adds a sleep for each halving, down to a millisecond, not for each
    /// time.
    private static let many = 4
    /// How long a sleep at Dispatch lasts at most; the next one follows.
    ///
    /// A sleep may end late by a tenth of its time, and by all of it if the machine sleeps and the wall clock is set back meanwhile.
    private let longestSleep: Duration
    /// How many cancelled alarms may stay in the heap.
    private static let few = 64

    /// The sleeper of all services on the default clock.
    static let shared = Sleeper(clock: .continuous, executor: ServiceQueue.shared)

    let clock: ServiceClock
    private let executor: (any TaskExecutor)?
    private let state = Lock(State())

    init(clock: ServiceClock, executor: (any TaskExecutor)?, longestSleep: Duration = .seconds(5)) {
        self.clock = clock
        self.executor = executor
        self.longestSleep = longestSleep
    }

    deinit {
        for sleep in state.withLock({ $0.takeSleeps() }) { sleep.task?.cancel() }
    }

    /// The numbers of alarms, of sleeping tasks, and of slots for bells.
    var counts: (alarms: Int, sleeps: Int, slots: Int) {
        state.withLock { ($0.alarms.count, $0.sleeps.count, $0.bells.count) }
    }

    /// When a task wakes next; `nil`: none sleeps.
    var nextWake: Duration? { state.withLock { $0.sleeps.last?.end } }

    /// Adds an alarm; ``Alarm/set()`` sets it.
    func add(at time: Duration, _ ring: @escaping Ring) -> Alarm {
        let (place, isFirst) = state.withLock { state in
            (state.add(Bell(ring: ring), at: time), state.sleeps.last.map { time < $0.end } ?? true)
        }
        return Alarm(sleeper: self, time: time, place: place, isFirst: isFirst)
    }

    /// Cancels an alarm; on the system's clocks its sleep continues.
    ///
    /// The runtime keeps a cancelled sleep until its time anyway. A sleep that continues serves the next alarms, so a thousand
    /// loads don't leave a thousand sleeps.
    private func callOff(_ place: Place) -> Bool {
        let isSystemClock = clock.isSystemClock
        let (bell, ended) = state.withLock { state in
            let bell = state.takeBell(at: place)
            if bell != nil { state.forgetOne() }
            return (bell, isSystemClock || state.alarms.count > 0 ? [] : state.takeSleeps())
        }
        for sleep in ended { sleep.task?.cancel() }
        return bell != nil
    }

    /// Makes sure that a task checks the alarms at this time.
    private func sleep(until time: Duration) {
        let isAtDispatch = executor === ServiceQueue.shared && clock.isSystemClock
        var time = time, rest = time - clock.now()
        if isAtDispatch, rest > longestSleep { (time, rest) = (time - rest + longestSleep, longestSleep) }
        let end: Duration? = state.withLock { [time, rest] state in
            // Another thread may have cancelled the alarm before it was set, or another task may already wake by that time.
            if state.alarms.count == 0 { return nil }
            if let next = state.sleeps.last?.end, next <= time { return nil }
            let isCrowded = state.sleeps.count >= Self.many && rest > .milliseconds(1)
            let end = isCrowded ? time - rest / 2 : time
            state.sleeps.append((end, nil))
            return end
        }
        guard let end else { return }
        // The shared sleeper never ends. A single weak reference to it would make each use cost three times as much.
        let shared = self === Sleeper.shared ? self : nil
        if isAtDispatch {
            return ServiceQueue.shared.run(after: end - clock.now()) { [clock, shared, weak own = shared == nil ? self : nil] in
                await (shared ?? own)?.wake(from: end, at: clock.now())
            }
        }
        let task = Task.detached(on: executor) { [clock, weak self] in
            guard await clock.hasPassed(end) else { return }
            // A clock that can't sleep counts as having passed the time.
            await self?.wake(from: end, at: max(clock.now(), end))
        }
        let isNeeded = state.withLock { state in
            guard let index = state.sleeps.firstIndex(where: { $0.end == end }) else { return false }
            state.sleeps[index].task = task
            return true
        }
        // The task woke meanwhile, or was cancelled before it was stored.
        if !isNeeded { task.cancel() }
    }

    /// A task woke at the end of its sleep.
    private func wake(from end: Duration, at now: Duration) async {
        var (due, next) = state.withLock { state in
            state.sleeps.removeAll { $0.end == end }
            var due: [Ring] = []
            while let place = state.alarms.removeEarliest(until: now) {
                if let bell = state.takeBell(at: place) { due.append(bell.ring) } else { state.forgotten -= 1 }
            }
            return (due, state.alarms.earliest)
        }
        // Set the next sleep first: the code that this task wakes may keep it busy for long.
        if let next { sleep(until: next) }
        let last = due.popLast()
        for ring in due { Task.detached(on: executor) { await ring(now) } }
        await last?(now)
    }
}

/// Wakes its owner when time limits have passed; one alarm serves all limits, until an earlier one is set.
package struct Alarms: ~Copyable, Sendable {
    private struct State {
        var alarm: Sleeper.Alarm?
        /// The owner's own sleeper, created on first use, unless it uses the shared one.
        var ownSleeper: Sleeper?
    }

    private let state = Lock(State())

    package init() {}

    deinit {
        wakeNoMore()
    }

    /// Makes sure that the owner checks its time limits at this time.
    ///
    /// - Parameters:
    ///   - clock: The clock of `time`, always the same.
    ///   - executor: Where the owner is woken, always the same.
    ///   - ring: Checks all limits. It isn't called if an earlier alarm rings. Its captures are kept until then, or until
    ///     ``wakeNoMore()``.
    @inline(never)
    package func wake(
        at time: Duration, on clock: ServiceClock, executor: (any TaskExecutor)?, _ ring: @escaping Sleeper.Ring
    ) {
        // An execution that an explorer drives has its own sleeper: its sleeps begin and end with it.
        let isShared = clock === ServiceClock.continuous && executor === ServiceQueue.shared && !DrivenExecutions.areRunning
        let (later, alarm) = state.withLock { state -> (Sleeper.Alarm?, Sleeper.Alarm?) in
            let sleeper = isShared ? .shared : state.ownSleeper ?? Sleeper(clock: clock, executor: executor)
            if !isShared { state.ownSleeper = sleeper }
            if let set = state.alarm, set.isPending, set.sleeper === sleeper, set.time <= time { return (nil, nil) }
            let alarm = sleeper.add(at: time, ring)
            defer { state.alarm = alarm }
            return (state.alarm, alarm)
        }
        alarm?.set()
        later?.callOff()
    }

    /// The sleeper of the pending alarm.
    var sleeper: Sleeper? { state.withLock { $0.alarm?.sleeper } }

    /// Cancels the alarm, because no time limit is left.
    package func wakeNoMore() {
        state.withLock { $0.alarm.take() }?.callOff()
    }
}

extension TokenService {
    /// Makes sure that the service checks its time limits when the limit of a load or of the store has passed.
    ///
    /// Until then the alarm retains the service, as does the work whose limit it is. With a weak reference a load would cost
    /// twice as much.
    nonisolated func wake(at deadline: Duration) {
        alarms.wake(at: deadline, on: clock, executor: executor) { await self.hasPassed($0) }
    }

    /// Does the same for a caller's own limit, without retaining the service: the caller may have left long before.
    nonisolated func wake(atLimit limit: Duration) {
        alarms.wake(at: limit, on: clock, executor: executor) { [weak self] in await self?.hasPassed($0) }
    }

    /// Ends what has taken too long.
    ///
    /// Callers' own limits are handled without entering the actor.
    private nonisolated func hasPassed(_ now: Duration) async {
        let (late, next, deadline) = lobby.withLock {
            ($0.expire(at: now), $0.nextLimit, $0.snapshot.nextDeadline)
        }
        for waiter in late { waiter.resume(with: .failure(TokenServiceError(.deadlineExceeded))) }
        if let next { wake(atLimit: next) }
        // Step even if the deadline has yet to come: setting another alarm here could retain the service for a load that has just
        // ended.
        if deadline < .forever { await step { $0.elapse(to: max($1, now)) } }
    }
}
