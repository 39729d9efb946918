import TokenServiceConcurrency

extension TokenService {
    /// Where callers are served without coming in to the actor: they find the token, or wait for the load that runs.
    ///
    /// A pure value behind the service's one lock. The lobby is closed while the actor decides something: a caller joins before
    /// that event or after it, never in the middle.
    struct Lobby<Waiter: Sendable>: Sendable {
        typealias Answer = Result<AccessToken, any Error>
        typealias Place = WaiterQueue<Waiter>.ID

        /// An answer that callers have yet to come for.
        private struct Uncollected {
            let answer: Answer
            let lastPlace: Place
            var callers: Int
        }

        private(set) var snapshot = Snapshot()
        /// The part of the snapshot that nearly every call copies, and nothing else.
        private(set) var hit = Hit(Snapshot())
        /// The highest priority of those who wait now.
        private(set) var urgency = Urgency.background
        private var isOpen = false
        /// How many have joined the load since the actor last heard of it.
        private var joined = 0
        /// Those who wait for the load; empty while there is none to join.
        private(set) var waiters = WaiterQueue<Waiter>()
        /// How many of them come for their answer themselves; a batch of callbacks is called with it.
        private var callers = 0
        /// The last answer, while callers have not come for it yet.
        private var uncollected: Uncollected?
        /// The answers before it, the oldest first.
        private var olderAnswers: [Uncollected] = []
        /// The same for those who left, each with an answer of its own.
        private var leavers: [Place: Answer] = [:]
        /// When callers with a limit of their own leave.
        private var limits = LimitHeap<Place>()

        /// Whether the caller is to start what is due, a refresh or a look at the shared store: the first one is.
        mutating func claimRefresh(at now: Duration) -> Bool {
            defer { hit = Hit(snapshot) }
            return snapshot.claimRefresh(at: now)
        }

        /// Takes a place among those who wait for the load that runs; `nil`: the caller must come in.
        mutating func join(
            seen generation: Int, urgency priority: Urgency, until limit: Duration? = nil, at now: Duration
        ) -> Place? {
            guard isOpen, let end = snapshot.joinableUntil, now < end, generation == snapshot.generation,
                priority <= urgency
            else { return nil }
            joined += 1
            return admit(urgency: priority, until: limit)
        }

        /// Takes the last place, for a caller that is about to suspend.
        mutating func admit(urgency priority: Urgency, until limit: Duration? = nil) -> Place {
            urgency = max(urgency, priority)
            let place = waiters.append()
            callers += 1
            if let limit { limits.insert(place, at: limit) }
            return place
        }

        /// Takes the last place for a waiter that is there already.
        mutating func admit(_ waiter: Waiter, urgency priority: Urgency) {
            urgency = max(urgency, priority)
            _ = waiters.append(waiter)
        }

        /// Whether the caller is to suspend, because it has not been answered yet.
        mutating func suspend(_ waiter: Waiter, at place: Place) -> Bool {
            waiters.fill(place, with: waiter)
        }

        /// What the caller gets who was at this place; each must come for it, once, when it is resumed.
        mutating func collectAnswer(at place: Place) -> Answer {
            if !leavers.isEmpty, let answer = leavers.removeValue(forKey: place) { return answer }
            if let index = olderAnswers.firstIndex(where: { place <= $0.lastPlace }) {
                olderAnswers[index].callers -= 1
                return olderAnswers[index].callers > 0 ? olderAnswers[index].answer : olderAnswers.remove(at: index).answer
            }
            guard var last = uncollected else {
                // Not reached: a caller is resumed after its answer was put here.
                return .failure(CancellationError())
            }
            last.callers -= 1
            uncollected = last.callers > 0 ? last : nil
            return last.answer
        }

        /// A caller leaves with an answer of its own, unless it has one; `nil`: it isn't to be resumed.
        mutating func leave(_ place: Place, with answer: Answer) -> Waiter? {
            // The first answer counts.
            guard waiters.holds(place) else { return nil }
            let waiter = waiters.remove(place)
            callers -= 1
            leavers[place] = answer
            if waiters.count == 0 { limits = LimitHeap() }
            return waiter
        }

        /// How many callers have yet to collect their answers.
        var uncollectedAnswers: Int {
            olderAnswers.reduce(leavers.count + (uncollected?.callers ?? 0)) { $0 + $1.callers }
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
            hit = Hit(snapshot)
            self.snapshot = snapshot
            isOpen = true
            if answer != nil || waiters.count == 0 { urgency = .background }
            guard let answer else { return WaiterQueue() }
            if callers > 0 {
                if let last = uncollected { olderAnswers.append(last) }
                uncollected = Uncollected(answer: answer, lastPlace: waiters.lastID, callers: callers)
            }
            callers = 0
            limits = LimitHeap()
            return waiters.takeAll()
        }
    }
}

extension TokenService {
    /// What a call needs that finds a valid token and has nothing else to do.
    struct Hit: Sendable {
        let token: AccessToken?
        /// Until then the token is handed out and nothing else is to be done: the one comparison of nearly every call.
        let nothingDueUntil: Duration
        let generation: Int
        let publication: Int?

        init(_ snapshot: Snapshot) {
            token = snapshot.token
            nothingDueUntil = snapshot.nothingDueUntil
            generation = snapshot.generation
            publication = snapshot.publication
        }
    }

    /// What callers see without coming in: the token to hand out or the load to join, and the fence they stand behind.
    struct Snapshot: Sendable {
        /// The token to hand out, until it expires.
        let token: AccessToken?
        /// From then on it is not handed out; `nil`: until the next change.
        let expiry: Duration?
        /// From when on the first caller starts a refresh, or a look at the shared store; `nil`: none does.
        private(set) var refreshFrom: Duration?
        let generation: Int
        /// The number of the token that is handed out, which no other has; `nil` if there is none.
        let publication: Int?
        /// Until when callers may join the load that runs; `nil` for none.
        let joinableUntil: Duration?
        /// When time alone next changes something for those who wait; `nil`: it doesn't.
        let nextDeadline: Duration?

        init(
            token: AccessToken? = nil, expiry: Duration? = nil, refreshFrom: Duration? = nil, generation: Int = 0,
            publication: Int? = nil, joinableUntil: Duration? = nil, nextDeadline: Duration? = nil
        ) {
            self.token = token
            self.expiry = expiry
            self.refreshFrom = refreshFrom
            self.generation = generation
            self.publication = publication
            self.joinableUntil = joinableUntil
            self.nextDeadline = nextDeadline
        }

        /// The token, if it may be handed out at this time.
        func token(at now: Duration) -> AccessToken? {
            expiry.map { now < $0 } ?? true ? token : nil
        }

        /// Whether the caller is to start what is due: the first one is.
        mutating func claimRefresh(at now: Duration) -> Bool {
            guard isRefreshDue(at: now) else { return false }
            refreshFrom = nil
            return true
        }

        /// Whether the first caller to claim a refresh, or a look, gets it now.
        func isRefreshDue(at now: Duration) -> Bool {
            refreshFrom.map { $0 <= now } ?? false
        }

        /// Until when the token is handed out and nothing else is to be done.
        var nothingDueUntil: Duration {
            guard let expiry else { return refreshFrom ?? (token == nil ? .zero : .seconds(Int64.max)) }
            return refreshFrom.map { min(expiry, $0) } ?? expiry
        }
    }
}

extension TokenService.StateMachine {
    /// The part of the state that callers need; no refresh is due while one runs.
    var snapshot: TokenService.Snapshot {
        switch state {
        case .empty, .loading, .stalled(nil, _):
            TokenService.Snapshot(generation: generation, joinableUntil: state.joinableUntil, nextDeadline: nextDeadline)
        case .fresh(let cached):
            snapshot(of: cached, refreshFrom: nextCheck.map { min(cached.refreshFrom ?? $0, $0) } ?? cached.refreshFrom)
        case .refreshing(let cached, _), .stalled(let cached?, _):
            snapshot(of: cached, refreshFrom: nil)
        }
    }

    private func snapshot(of cached: CachedToken, refreshFrom: Duration?) -> TokenService.Snapshot {
        TokenService.Snapshot(
            token: cached.token, expiry: cached.expiry, refreshFrom: refreshFrom, generation: generation,
            publication: publications, nextDeadline: nextDeadline)
    }

    /// The next moment at which time alone changes something for those who wait; `nil`: there is none.
    var nextDeadline: Duration? {
        guard let ofStore = storage.nextDeadline else { return state.loadDeadline }
        return state.loadDeadline.map { min(ofStore, $0) } ?? ofStore
    }
}
