extension TokenService {
    /// Where callers are served without coming in to the actor: they find the token, or wait for the load that runs.
    ///
    /// A pure value behind the service's one lock. The lobby is closed while the actor decides something: a caller joins before
    /// that event or after it, never in the middle.
    struct Lobby<Waiter: Sendable>: Sendable {
        typealias Answer = Result<AccessToken, any Error>
        typealias Place = WaiterQueue<Waiter>.ID

        private(set) var snapshot = Snapshot(cached: nil, generation: 0)
        /// The highest priority of those who wait now.
        private(set) var urgency = TaskPriority.background
        private var isOpen = false
        /// How many have joined the load since the actor last heard of it.
        private var joined = 0
        /// Those who wait for the load; empty while there is none to join.
        private(set) var waiters = WaiterQueue<Waiter>()
        /// Callers that have a place and are about to suspend, and what they get instead if an answer is quicker.
        private var notYetSuspended: [Place: Answer?] = [:]
        /// When callers with a limit of their own leave.
        private var limits = LimitHeap<Place>()

        /// Whether the caller is to start a refresh: the first one in the soft window is.
        mutating func claimRefresh(at now: Duration) -> Bool {
            snapshot.claimRefresh(at: now)
        }

        /// Takes a place among those who wait for the load that runs; `nil`: the caller must come in.
        mutating func join(
            seen generation: Int, priority: TaskPriority, until limit: Duration? = nil, at now: Duration
        ) -> Place? {
            guard isOpen, let end = snapshot.joinableUntil, now < end, generation == snapshot.generation,
                priority <= urgency
            else { return nil }
            joined += 1
            return admit(priority: priority, until: limit)
        }

        /// Takes the last place, for a caller that is about to suspend.
        mutating func admit(priority: TaskPriority, until limit: Duration? = nil) -> Place {
            urgency = max(urgency, priority)
            let place = waiters.append()
            notYetSuspended[place] = .some(nil)
            if let limit { limits.insert(place, at: limit) }
            return place
        }

        /// Takes the last place for a waiter that is there already.
        mutating func admit(_ waiter: Waiter, priority: TaskPriority) {
            urgency = max(urgency, priority)
            _ = waiters.append(waiter)
        }

        /// The caller suspends; otherwise this is its answer.
        mutating func suspend(_ waiter: Waiter, at place: Place) -> Answer? {
            if let answer = notYetSuspended.removeValue(forKey: place) ?? nil { return answer }
            waiters.fill(place, with: waiter)
            return nil
        }

        /// A caller leaves with an answer of its own; `nil`: it has not suspended, or has been answered.
        mutating func leave(_ place: Place, with answer: Answer) -> Waiter? {
            let waiter = waiters.remove(place)
            if waiters.count == 0 { limits = LimitHeap() }
            // The first answer counts.
            if case .some(nil) = notYetSuspended[place] { notYetSuspended[place] = answer }
            return waiter
        }

        /// When the next caller runs out of time; `nil`: none does.
        var nextLimit: Duration? { limits.earliest }

        /// Callers whose own time is over leave; returns whom to resume.
        mutating func expire(at now: Duration) -> [Waiter] {
            var late: [Waiter] = []
            while let place = limits.removeEarliest(until: now) {
                if let waiter = leave(place, with: .failure(TokenServiceError(.deadlineExceeded))) { late.append(waiter) }
            }
            return late
        }

        /// The actor begins to decide: who has come until now, and whether anybody waits.
        mutating func close() -> (joined: Int, isAwaited: Bool) {
            defer { joined = 0 }
            isOpen = false
            return (joined, waiters.count > 0)
        }

        /// The actor has decided: what callers see from now on, and an answer for those who wait; returns whom to resume.
        mutating func open(_ snapshot: Snapshot, answering answer: Answer?) -> WaiterQueue<Waiter> {
            self.snapshot = snapshot
            isOpen = true
            if answer != nil || waiters.count == 0 { urgency = .background }
            guard let answer else { return WaiterQueue() }
            notYetSuspended = notYetSuspended.mapValues { $0 ?? answer }
            limits = LimitHeap()
            return waiters.takeAll()
        }
    }
}

extension TokenService {
    /// What callers see without coming in: the token to hand out or the load to join, and the fence they stand behind.
    struct Snapshot: Sendable {
        private(set) var cached: CachedToken? {
            didSet { nothingDueUntil = Self.nextDueTime(of: cached) }
        }
        let generation: Int
        /// The number of the token that is handed out, which no other has; `nil` if there is none.
        let publication: Int?
        /// Until when callers may join the load that runs; `nil` for none.
        let joinableUntil: Duration?
        /// When time alone next changes something for those who wait; `nil`: it doesn't.
        let nextDeadline: Duration?
        /// Until then the token is handed out and nothing else is to be done: the one comparison of nearly every call.
        private(set) var nothingDueUntil: Duration

        init(
            cached: CachedToken?, generation: Int, publication: Int? = nil, joinableUntil: Duration? = nil,
            nextDeadline: Duration? = nil
        ) {
            self.cached = cached
            self.generation = generation
            self.publication = publication
            self.joinableUntil = joinableUntil
            self.nextDeadline = nextDeadline
            nothingDueUntil = Self.nextDueTime(of: cached)
        }

        /// The token, if it may be handed out at this time.
        func token(at now: Duration) -> AccessToken? {
            guard let cached, cached.isValid(at: now) else { return nil }
            return cached.token
        }

        /// Whether the caller is to start a refresh: the first one in the soft window is.
        mutating func claimRefresh(at now: Duration) -> Bool {
            guard isRefreshDue(at: now) else { return false }
            cached?.refreshFrom = nil
            return true
        }

        /// Whether the first caller to claim a refresh gets it now.
        func isRefreshDue(at now: Duration) -> Bool {
            cached?.isRefreshDue(at: now) ?? false
        }

        private static func nextDueTime(of cached: CachedToken?) -> Duration {
            guard let cached else { return .zero }
            let never = Duration(secondsComponent: .max, attosecondsComponent: 0)
            return min(cached.expiry ?? never, cached.refreshFrom ?? never)
        }
    }
}

extension TokenService.StateMachine {
    /// The part of the state that callers need; no refresh is due while one runs.
    var snapshot: TokenService.Snapshot {
        var cached = state.cached
        if state.flight != nil { cached?.refreshFrom = nil }
        var limit: Duration?
        if case .loading(let flight) = state { limit = flight.deadline }
        return TokenService.Snapshot(
            cached: cached, generation: generation, publication: cached == nil ? nil : publications, joinableUntil: limit,
            nextDeadline: nextDeadline)
    }

    /// The next moment at which time alone changes something for those who wait; `nil`: there is none.
    var nextDeadline: Duration? {
        var deadlines = [storage.nextDeadline].compactMap { $0 }
        if let flight = state.runningFlight, flight.isLoading { deadlines.append(flight.deadline) }
        return deadlines.min()
    }
}
