import TokenServiceConcurrency

extension TokenService {
    /// Serves callers without entering the actor: they find the token, or wait for the running load.
    ///
    /// A pure value behind the service's one lock. The lobby is closed while the actor makes a decision: a caller joins before
    /// that event or after it, never in the middle.
    struct Lobby<Waiter: Sendable>: Sendable {
        typealias Answer = Result<AccessToken, any Error>
        typealias Place = WaiterQueue<Waiter>.ID

        /// An answer that callers have yet to collect.
        private struct Uncollected {
            let answer: Answer
            let lastPlace: Place
            var callers: Int
        }

        private(set) var snapshot = Snapshot()
        /// When the token really expires; `nil`: never.
        ///
        /// Not in the snapshot, of which a hit would then copy all.
        private(set) var end: Duration?
        /// The highest priority of the current waiters.
        private(set) var urgency = Urgency.background
        private var isOpen = true
        /// Hands events to their subscribers; `nil` until the first one asks for a stream.
        var hub: EventHub<TokenEvent>?
        /// How many callers have joined the load since the lobby last told the actor.
        private var joined = 0
        /// The waiters for the load; empty while there is none to join.
        private(set) var waiters = WaiterQueue<Waiter>()
        /// How many waiters collect their answers themselves, unlike batches of callbacks.
        private var callers = 0
        /// The last answer, while callers have yet to collect it.
        private var uncollected: Uncollected?
        /// Earlier uncollected answers, oldest first.
        private var olderAnswers: [Uncollected] = []
        /// The answers for callers that left before the load ended.
        private var leavers: [Place: Answer] = [:]
        /// When callers with a limit of their own leave; includes limits of callers who have left.
        private var limits = LimitHeap<Place>()
        /// The number of limits that triggers a purge of departed callers' limits.
        private var limitsUntilPurge = 64
        /// The acts of the program that the machine has yet to learn of, oldest first; the snapshot shows their effect.
        private(set) var notices: [Notice] = []

        /// Returns whether the caller must start the refresh or the store check that is due; `true` for the first caller only.
        mutating func claimRefresh(at now: Duration) -> Bool {
            snapshot.claimRefresh(at: now)
        }

        /// Whether the service is drained and no caller waits, so that a load that has spent nothing is pointless.
        var isDeserted: Bool { snapshot.isDrained && waiters.count == 0 }

        /// Takes a place among the waiters for the running load; `nil`: the caller must enter the actor.
        ///
        /// The caller's urgency counts from when it suspends: see ``raiseUrgency(of:to:)``.
        mutating func join(seen generation: Int, until limit: Duration? = nil, at now: Duration) -> Place? {
            guard isOpen, now < snapshot.joinableUntil, generation == snapshot.hit.generation else { return nil }
            joined += 1
            return admit(until: limit)
        }

        /// Takes the last place, for a caller that is about to suspend.
        mutating func admit(urgency priority: Urgency = .background, until limit: Duration? = nil) -> Place {
            urgency = max(urgency, priority)
            let place = waiters.append()
            callers += 1
            if let limit { keep(limit, of: place) }
            return place
        }

        /// Adds a limit; purges when their number has doubled since the last purge, so the cost per limit is constant and few
        /// outlast their callers.
        private mutating func keep(_ limit: Duration, of place: Place) {
            if limits.count >= limitsUntilPurge {
                let waiters = waiters
                limits.purge { !waiters.holds($0) }
                limitsUntilPurge = max(64, 2 * limits.count)
            }
            limits.insert(place, at: limit)
        }

        /// Takes the last place for an existing waiter.
        @discardableResult
        mutating func admit(_ waiter: Waiter, urgency priority: Urgency) -> Place {
            urgency = max(urgency, priority)
            return waiters.append(waiter)
        }

        /// Removes an unanswered waiter that collects no answer, a batch of callbacks; `nil`: it has its answer.
        mutating func remove(_ place: Place) -> Waiter? {
            guard waiters.holds(place) else { return nil }
            defer { if waiters.count == 0 { limits = LimitHeap() } }
            return waiters.remove(place)
        }

        /// Raises a waiting caller's urgency; returns whether it is now more urgent than all others.
        mutating func raiseUrgency(of place: Place, to priority: Urgency) -> Bool {
            guard waiters.holds(place), urgency < priority else { return false }
            urgency = priority
            return true
        }

        /// Whether the caller must suspend, because it has not been answered yet.
        mutating func suspend(_ waiter: Waiter, at place: Place) -> Bool {
            waiters.fill(place, with: waiter)
        }

        /// Returns the answer for this place; each caller must collect it once, when it is resumed.
        mutating func collectAnswer(at place: Place) -> Answer {
            if !leavers.isEmpty, let answer = leavers.removeValue(forKey: place) { return answer }
            if let index = olderAnswers.firstIndex(where: { place <= $0.lastPlace }) {
                olderAnswers[index].callers -= 1
                return olderAnswers[index].callers > 0 ? olderAnswers[index].answer : olderAnswers.remove(at: index).answer
            }
            // Without one is unreachable: a caller is resumed after its answer was put here.
            let answer = uncollected?.answer ?? .failure(CancellationError())
            uncollected?.callers -= 1
            if uncollected?.callers == 0 { uncollected = nil }
            return answer
        }

        /// Removes an unanswered caller and gives it its own answer; `nil`: there is no waiter to resume.
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

        /// How many limits it keeps.
        var limitCount: Int { limits.count }

        /// When the next caller runs out of time; `nil`: none does.
        var nextLimit: Duration? { limits.earliest }

        /// Removes callers whose own time is over; returns the waiters to resume.
        mutating func expire(at now: Duration) -> [Waiter] {
            guard let first = limits.earliest, first <= now else { return [] }
            var late: [Waiter] = []
            while let place = limits.removeEarliest(until: now) {
                if let waiter = leave(place, with: .failure(TokenServiceError(.deadlineExceeded))) { late.append(waiter) }
            }
            return late
        }

        /// Notes an act of the program, which takes effect at once: from now on no caller finds what it ended.
        ///
        /// The machine learns of it with its next event. Callers that have joined belong before it. Later ones find nothing to
        /// join, so they enter the actor, where the notice precedes them.
        ///
        /// - Parameter expected: The generation in which it is meant; does nothing in any other.
        /// - Returns: Whether it was noted.
        mutating func note(_ act: Notice.Act, for fence: Fence?, at now: Duration, in expected: Int? = nil) -> Bool {
            let generation = snapshot.hit.generation
            guard expected ?? generation == generation else { return false }
            // The event that is being decided on may end the session itself, and then begins the generation that is left out.
            let number = act.isFence ? generation + (isOpen ? 1 : 2) : generation
            let notice = Notice(act: act, number: number, fence: fence, time: now)
            notices.append(notice)
            snapshot.heed(notice)
            return true
        }

        /// Begins a decision of the actor; returns how many callers have joined, whether any waits, and whether anything listens,
        /// and what the machine must learn first.
        mutating func close() -> (joined: Int, isAwaited: Bool, hasListeners: Bool, notices: [Notice]) {
            defer { (joined, notices) = (0, []) }
            isOpen = false
            return (joined, waiters.count > 0, hub != nil, notices)
        }

        /// Ends the decision with the callers' new snapshot and an answer for the waiters; returns the waiters to resume.
        ///
        /// The decision knew nothing of the acts noted meanwhile, so what they ended isn't shown. But the waiters get their
        /// answer: all of them called before those acts, since nobody joins a closed lobby.
        mutating func open(
            _ snapshot: Snapshot, until end: Duration? = nil, answering answer: Answer?
        ) -> WaiterQueue<Waiter> {
            (self.snapshot, self.end) = (snapshot, end)
            for notice in notices { self.snapshot.heed(notice) }
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
    /// The view of callers that don't enter the actor: the token to hand out or the load to join, and the current generation.
    struct Snapshot: Sendable {
        private(set) var hit: Hit
        /// From then on the token is not handed out.
        let expiry: Duration
        /// The time from which the first caller starts a refresh or a store check.
        private(set) var refreshFrom: Duration
        /// Until when callers may join the running load; zero: there is none.
        let joinableUntil: Duration
        /// The next time at which a deadline changes something for the waiters.
        let nextDeadline: Duration
        /// Whether the service is drained, so that it starts no load.
        let isDrained: Bool
        /// Whether there is a grant to load with; `nil`: memory doesn't tell.
        let isSignedIn: Bool?

        init(
            token: AccessToken? = nil, expiry: Duration? = nil, refreshFrom: Duration? = nil, generation: Int = 0,
            publication: Int = 0, joinableUntil: Duration? = nil, nextDeadline: Duration? = nil, isDrained: Bool = false,
            isSignedIn: Bool? = nil
        ) {
            self.isDrained = isDrained
            self.isSignedIn = isSignedIn
            self.expiry = expiry ?? .forever
            self.refreshFrom = refreshFrom ?? .forever
            self.joinableUntil = joinableUntil ?? .zero
            self.nextDeadline = nextDeadline ?? .forever
            let nothingDueUntil = token == nil ? .zero : min(self.expiry, self.refreshFrom)
            hit = Hit(token: token, nothingDueUntil: nothingDueUntil, generation: generation, publication: publication)
        }

        /// The token, if it may be handed out at this time.
        func token(at now: Duration) -> AccessToken? {
            now < expiry ? hit.token : nil
        }

        /// Whether a refresh or a store check is due that no caller has claimed.
        func isRefreshDue(at now: Duration) -> Bool {
            refreshFrom <= now
        }

        /// Shows no longer what an act of the program ended, before the machine learns of it.
        mutating func heed(_ notice: Notice) {
            if case .refusal(let token, _) = notice.act, hit.token?.value != token.value { return }
            let isSignedIn =
                switch notice.act {
                case .signIn: true
                case .signOut: false
                case .refusal: self.isSignedIn
                }
            self = Snapshot(
                generation: max(notice.number, hit.generation), publication: hit.publication, nextDeadline: nextDeadline,
                isDrained: isDrained, isSignedIn: isSignedIn)
        }

        /// Returns whether the caller must start what is due; `true` for the first caller only.
        mutating func claimRefresh(at now: Duration) -> Bool {
            guard isRefreshDue(at: now) else { return false }
            refreshFrom = .forever
            hit.nothingDueUntil = expiry
            return true
        }
    }

    /// The data for a call that finds a valid token and nothing else due; nearly every call copies only this.
    struct Hit: Sendable {
        /// The token to hand out, until it expires.
        let token: AccessToken?
        /// Until then the token is handed out and nothing else is due; nearly every call compares only this.
        fileprivate(set) var nothingDueUntil: Duration
        let generation: Int
        /// A unique number of the token that is handed out.
        let publication: Int
    }
}

extension TokenService {
    /// An act of the program that has taken effect for callers, on its way to the machine.
    struct Notice: Sendable {
        enum Act: Sendable {
            case signIn(AccessToken)
            case signOut
            /// A resource server refused this token. If its request is to be sent again, the token may be of an
            /// ended session, and is ignored then.
            case refusal(AccessToken, isToResend: Bool = false)

            var isFence: Bool { if case .refusal = self { false } else { true } }

            /// Whether waiters must no longer get this token.
            func ends(_ token: AccessToken) -> Bool {
                if case .refusal(let refused, _) = self { refused.value == token.value } else { true }
            }

            /// The token of a sign-in.
            var token: AccessToken? { if case .signIn(let token) = self { token } else { nil } }
        }

        let act: Act
        /// The generation that it begins; a refusal begins none.
        let number: Int
        /// `nil` for a refusal.
        let fence: Fence?
        /// When it was made.
        let time: Duration
    }
}

extension Duration {
    /// Later than any time.
    static var forever: Duration { .seconds(Int64.max) }
}
